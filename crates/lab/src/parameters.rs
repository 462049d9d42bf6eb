//! What a paper leaves unsaid, assumed: one file a paper names each assumption with its value and the reason. The file also names the
//! paper's traces: recorded files may stand in for the generated ones.

use crate::error::LabError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The value of an assumption.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A quantity; the assumption's name ends in its unit.
    Number(f64),
    /// One of several names.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => write!(f, "{text}"),
        }
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::Flag(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a name",
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// Its name, with the unit last.
    pub name: String,
    pub value: Value,
    pub why: String,
    /// Other values that could have been assumed: the sensitivity of claims is measured with each.
    #[serde(default)]
    pub others: Vec<Value>,
    /// The least that makes sense, for numbers.
    pub least: Option<f64>,
    /// The most that makes sense, for numbers.
    pub most: Option<f64>,
}

/// All assumptions of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The paper's name, as its text file is named.
    pub paper: String,
    /// The traces for which recorded files may stand in.
    #[serde(default)]
    traces: Vec<String>,
    #[serde(rename = "assumption")]
    assumptions: Vec<Assumption>,
    /// The files that stand in for a trace, in the order of its intervals.
    #[serde(skip)]
    recorded: BTreeMap<String, Vec<PathBuf>>,
}

impl Parameters {
    /// Reads a parameter file. `place` names it in errors.
    ///
    /// # Errors
    /// If a line is no TOML, a field is unknown or missing, or a value is outside its own bounds.
    pub fn parse(place: &str, text: &str) -> Result<Parameters, LabError> {
        let parameters: Parameters = toml::from_str(text)
            .map_err(|error| LabError::Parameter { place: place.to_owned(), why: error.to_string() })?;
        for assumption in &parameters.assumptions {
            for value in std::iter::once(&assumption.value).chain(&assumption.others) {
                assumption.check(value).map_err(|why| LabError::Parameter {
                    place: format!("{place}: {}", assumption.name),
                    why,
                })?;
            }
        }
        Ok(parameters)
    }

    /// Those of an experiment that assumes nothing: all of it is said in its file.
    pub fn none(paper: &str) -> Parameters {
        Parameters {
            paper: paper.to_owned(),
            traces: Vec::new(),
            assumptions: Vec::new(),
            recorded: BTreeMap::new(),
        }
    }

    /// All assumptions in the file's order.
    pub fn all(&self) -> &[Assumption] {
        &self.assumptions
    }

    /// The assumption of this name.
    ///
    /// # Panics
    /// If the paper's file does not have it: experiments and their file are made together.
    pub fn get(&self, name: &str) -> &Assumption {
        let found = self.assumptions.iter().find(|assumption| assumption.name == name);
        found.unwrap_or_else(|| panic!("the parameter file of {} has no `{name}`", self.paper))
    }

    /// The number assumed under this name.
    ///
    /// # Panics
    /// If it is no number.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name).value {
            Value::Number(number) => number,
            ref other => panic!("`{name}` is {other}, and a number is wanted"),
        }
    }

    /// The number assumed under this name, where it counts something.
    pub fn count(&self, name: &str) -> u64 {
        self.number(name) as u64
    }

    /// The name assumed under this name.
    ///
    /// # Panics
    /// If it is no text.
    pub fn text(&self, name: &str) -> &str {
        match &self.get(name).value {
            Value::Text(text) => text,
            other => panic!("`{name}` is {other}, and a name is wanted"),
        }
    }

    /// Whether what stands under this name is assumed.
    ///
    /// # Panics
    /// If it is neither true nor false.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name).value {
            Value::Flag(flag) => flag,
            ref other => panic!("`{name}` is {other}, and true or false is wanted"),
        }
    }

    /// The same with another value for one assumption.
    ///
    /// # Panics
    /// If the file does not have it.
    #[must_use]
    pub fn with(&self, name: &str, value: Value) -> Parameters {
        let mut changed = self.clone();
        let found = changed.assumptions.iter_mut().find(|assumption| assumption.name == name);
        found.unwrap_or_else(|| panic!("no assumption is named {name}")).value = value;
        changed
    }

    /// Takes `name=value` from the command line.
    ///
    /// # Errors
    /// If there is no such assumption, or the value is of another kind or out of bounds.
    pub fn set(&mut self, setting: &str) -> Result<(), LabError> {
        let refuse = |why: String| LabError::Parameter { place: format!("--set {setting}"), why };
        let (name, text) = setting.split_once('=').ok_or_else(|| refuse("give NAME=VALUE".to_owned()))?;
        let known: Vec<&str> = self.assumptions.iter().map(|assumption| assumption.name.as_str()).collect();
        let unknown = match known.as_slice() {
            [] => format!("{} assumes nothing that could be set", self.paper),
            known => format!("{} has no assumption `{name}`; it has {}", self.paper, known.join(", ")),
        };
        let found = self.assumptions.iter_mut().find(|assumption| assumption.name == name);
        let assumption = found.ok_or_else(|| refuse(unknown))?;
        let value = assumption.parse(text).map_err(refuse)?;
        assumption.value = value;
        Ok(())
    }

    /// Takes `trace=PATH` from the command line: a file, or a folder that stands for all its files in the order of their names. Files
    /// of the same trace follow those that were given before.
    ///
    /// # Errors
    /// If the paper has no such trace, or there is no such file or folder.
    pub fn take_trace(&mut self, setting: &str) -> Result<(), LabError> {
        let refuse = |why: String| LabError::Parameter { place: format!("--trace {setting}"), why };
        let (name, path) = setting.split_once('=').ok_or_else(|| refuse("give TRACE=PATH".to_owned()))?;
        if !self.traces.iter().any(|known| known == name) {
            return Err(refuse(match self.traces.as_slice() {
                [] => format!("{} has no trace for which a file could stand in", self.paper),
                known => format!("{} has no trace `{name}`; it has {}", self.paper, known.join(", ")),
            }));
        }
        let files =
            files_of(Path::new(path)).map_err(|error| refuse(format!("cannot read {path}: {error}")))?;
        if files.is_empty() {
            return Err(refuse(format!("the folder {path} has no files")));
        }
        self.recorded.entry(name.to_owned()).or_default().extend(files);
        Ok(())
    }

    /// The files that stand in for this trace; none if it is to be generated.
    pub fn recorded(&self, trace: &str) -> &[PathBuf] {
        self.recorded.get(trace).map_or(&[], Vec::as_slice)
    }
}

/// The file itself, or the files of the folder in the order of their names.
fn files_of(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = entries.collect::<std::io::Result<_>>()?;
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

impl Assumption {
    fn parse(&self, text: &str) -> Result<Value, String> {
        let wrong = || format!("{text} is not {}", self.value.kind());
        let value = match self.value {
            Value::Flag(_) => Value::Flag(text.parse().map_err(|_| wrong())?),
            Value::Number(_) => Value::Number(text.parse().map_err(|_| wrong())?),
            Value::Text(_) => Value::Text(text.to_owned()),
        };
        self.check(&value).map(|()| value)
    }

    /// A name must be one of those listed; a number must lie within its bounds.
    fn check(&self, value: &Value) -> Result<(), String> {
        match (value, &self.value) {
            (Value::Number(number), Value::Number(_)) => self.check_number(*number),
            (Value::Text(_), Value::Text(_)) if !self.others.contains(value) && *value != self.value => {
                let known: Vec<String> =
                    std::iter::once(&self.value).chain(&self.others).map(Value::to_string).collect();
                Err(format!("{value} is not one of {}", known.join(", ")))
            }
            (Value::Text(_), Value::Text(_)) | (Value::Flag(_), Value::Flag(_)) => Ok(()),
            _ => Err(format!("{value} is not {}", self.value.kind())),
        }
    }

    fn check_number(&self, number: f64) -> Result<(), String> {
        if !number.is_finite() {
            return Err(format!("{number} is not finite"));
        }
        match (self.least, self.most) {
            (Some(least), _) if number < least => Err(format!("{number} is less than {least}")),
            (_, Some(most)) if number > most => Err(format!("{number} is more than {most}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        paper = \"p\"
        [[assumption]]
        name = \"latency_us\"
        value = 50
        others = [10]
        least = 0
        why = \"w\"
        [[assumption]]
        name = \"release\"
        value = \"half\"
        others = [\"all\"]
        why = \"w\"
    ";

    #[test]
    fn settings_are_checked_against_kind_bounds_and_names() {
        let mut parameters = Parameters::parse("p.toml", TEXT).unwrap();
        parameters.set("latency_us=75").unwrap();
        parameters.set("release=all").unwrap();
        assert_eq!((parameters.number("latency_us"), parameters.text("release")), (75.0, "all"));
        for wrong in
            ["latency_us=x", "latency_us=-1", "latency_us=inf", "release=none", "nothing=1", "latency_us"]
        {
            let error = parameters.set(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn recorded_files_follow_one_another_as_they_were_given() {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("part");
        std::fs::create_dir_all(part.join("deeper")).unwrap();
        for name in ["part/b", "part/a", "z"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let text = TEXT.replace("paper = \"p\"", "paper = \"p\"\ntraces = [\"mail\"]");
        let mut parameters = Parameters::parse("p.toml", &text).unwrap();
        assert!(parameters.recorded("mail").is_empty());
        let give = |path: &Path| format!("mail={}", path.display());
        parameters.take_trace(&give(&folder.path().join("z"))).unwrap();
        parameters.take_trace(&give(&part)).unwrap();
        let expected = ["z", "part/a", "part/b"].map(|name| folder.path().join(name));
        assert_eq!(parameters.recorded("mail"), expected);

        let empty = give(&part.join("deeper"));
        let absent = give(&part.join("c"));
        for (wrong, why) in [
            (empty.as_str(), "has no files"),
            (&absent, "cannot read"),
            ("post=x", "it has mail"),
            ("mail", "give TRACE=PATH"),
        ] {
            let error = parameters.take_trace(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains(why), "{error}");
        }
        let mut without = Parameters::parse("p.toml", TEXT).unwrap();
        assert!(without.take_trace("mail=x").unwrap_err().to_string().contains("p has no trace for which"));
    }

    #[test]
    fn a_file_with_a_wrong_field_is_named() {
        let error = Parameters::parse("p.toml", &TEXT.replace("why", "reason")).unwrap_err().to_string();
        assert!(error.contains("p.toml") && error.contains("reason"), "{error}");
        let error = Parameters::parse("p.toml", &TEXT.replace("[10]", "[-10]")).unwrap_err().to_string();
        assert!(error.contains("latency_us: -10 is less than 0"), "{error}");
    }
}
