//! Links in documents: a relative one must lead to a file, and to a heading in it if it names one.

use std::path::Path;

/// Complaints about the links of one Markdown file.
pub(super) fn check(root: &Path, path: &Path, text: &str) -> Vec<String> {
    let targets = text
        .lines()
        .enumerate()
        .flat_map(|(number, line)| targets(line).into_iter().map(move |target| (number + 1, target)));
    let broken = targets.filter(|(_, target)| is_local(target) && !resolves(root, path, text, target));
    broken
        .map(|(number, target)| format!("{}:{number}: the link `{target}` leads nowhere", path.display()))
        .collect()
}

fn is_local(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

fn resolves(root: &Path, path: &Path, text: &str, target: &str) -> bool {
    let (file, heading) =
        target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    if file.is_empty() {
        return heading.is_none_or(|heading| has_heading(text, heading));
    }
    let folder = root.join(path).parent().map(Path::to_path_buf).unwrap_or_default();
    let target = folder.join(file);
    match heading {
        Some(heading) if file.ends_with(".md") => {
            std::fs::read_to_string(&target).is_ok_and(|text| has_heading(&text, heading))
        }
        _ => target.exists(),
    }
}

fn has_heading(text: &str, heading: &str) -> bool {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| slug(line.trim_start_matches('#')) == heading)
}

/// A heading's anchor as code hosts make it: lower case, spaces to dashes, punctuation dropped.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once("](") {
        let Some((target, further)) = after.split_once(')') else { break };
        let target = target.split_whitespace().next().unwrap_or_default();
        found.push(target.trim_matches(['<', '>']).to_owned());
        rest = further;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_leads_nowhere() {
        let root = crate::workspace::root();
        let text = "# A Heading, here\n[good](Cargo.toml) [web](https://example.org/x)\n[bad](no/such.md)\n\
                    [in](#a-heading-here) [out](#elsewhere)\n";
        let complaints = check(root, Path::new("README.md"), text);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].contains("README.md:3") && complaints[1].contains("#elsewhere"));
    }
}
