//! Where in a TOML file a field stands.

/// The line, counted from 1, on which the value of `field` begins: a path such as `cluster.policy`, through lists of
/// tables with their index (`slow.0.brick`). What is varied stands under `[vary]`. Without the field itself, the heading
/// of its table.
pub(super) fn line_of(text: &str, field: &str) -> Option<usize> {
    let fields = fields(text);
    let find = |path: &str| fields.iter().find(|(known, _)| known == path).map(|(_, line)| *line);
    let mut tables = field;
    find(&format!("vary.{field}")).or_else(|| find(field)).or_else(|| {
        while let Some((table, _)) = tables.rsplit_once('.') {
            tables = table;
            if let Some(line) = find(table) {
                return Some(line);
            }
        }
        None
    })
}

/// All headings and keys by their paths, with their lines.
fn fields(text: &str) -> Vec<(String, usize)> {
    let mut section = String::new();
    let (mut found, mut lists) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if let Some(name) = heading_of(line, &mut lists) {
            found.push((name.clone(), number));
            section = name;
        } else if let Some((key, _)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let key = key.trim().replace(['"', '\''], "");
            found.push((if section.is_empty() { key } else { format!("{section}.{key}") }, number));
        }
    }
    found
}

fn heading_of(line: &str, lists: &mut Vec<(String, usize)>) -> Option<String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if let Some(name) = line.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
        let name = name.trim().to_owned();
        let count = lists.iter().filter(|(known, _)| *known == name).count();
        lists.push((name.clone(), count));
        return Some(format!("{name}.{count}"));
    }
    let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))?;
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_tables_and_lists() {
        let text = "title = \"x\"\n[cluster]\npolicy = \"claim\" # who\n[[slow]]\nbrick = 1\n[[slow]]\nbrick = 2\n\
                    [vary]\n\"cluster.bricks\" = [3]\n";
        assert_eq!(line_of(text, "title"), Some(1));
        assert_eq!(line_of(text, "cluster.policy"), Some(3));
        assert_eq!(line_of(text, "slow.1.brick"), Some(7));
        assert_eq!(line_of(text, "cluster.bricks"), Some(9));
        assert_eq!(line_of(text, "cluster.replicas"), Some(2));
        assert_eq!(line_of(text, "brick.disk"), None);
    }
}
