//! A guide as steps: the files it shows and the commands it gives. What becomes of them is in `walk`.
//!
//! A block of `toml` whose first line is `# PATH` is that file; with `# in PATH` it is added to
//! it; without either it is a fragment that is only shown. A block of `sh` is commands. A block
//! of `output` is what the last command before it prints. Other blocks are only shown.

/// What a reader of a guide does next, with the line it stands in.
#[derive(Debug, PartialEq)]
pub struct Step {
    pub line: usize,
    pub what: What,
}

#[derive(Debug, PartialEq)]
pub enum What {
    /// The whole of a file.
    File {
        path: String,
        text: String,
    },
    /// More for a file that is there.
    More {
        path: String,
        text: String,
    },
    /// A piece of a project file that is only shown; it has to be TOML all the same.
    Fragment(String),
    Command(String),
    Output(String),
}

/// A fenced block.
struct Block<'t> {
    line: usize,
    language: &'t str,
    text: String,
}

/// The steps of a guide, in their order.
pub fn steps(markdown: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for block in blocks(markdown)? {
        let one = |what| vec![Step { line: block.line, what }];
        steps.extend(match block.language {
            "sh" => commands(&block),
            "toml" => one(of_toml(&block.text)),
            "output" => one(What::Output(block.text)),
            "bash" | "shell" | "console" => return Err(format!("line {}: write `sh` there", block.line)),
            _ => Vec::new(),
        });
    }
    Ok(steps)
}

fn blocks(markdown: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in markdown.lines().enumerate() {
        let fence = line.strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                open = Some(Block { line: index + 2, language: language.trim(), text: String::new() });
            }
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err(format!("the block of line {} has no end", block.line)),
        None => Ok(blocks),
    }
}

fn of_toml(text: &str) -> What {
    let first = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
    let is_path = |path: &str| path.ends_with(".toml") && !path.contains(' ');
    let (is_more, path) = match first.strip_prefix("in ") {
        Some(path) => (true, path),
        None => (false, first),
    };
    let (path, text) = (path.to_owned(), text.to_owned());
    match (is_path(&path), is_more) {
        (true, true) => What::More { path, text },
        (true, false) => What::File { path, text },
        (false, _) => What::Fragment(text),
    }
}

/// A command reaches over a line that ends in a backslash, and over what it reads with `<<`.
fn commands(block: &Block) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = block.text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = line.to_owned();
        let here = line.split_once("<<").map(|(_, word)| word.trim().trim_matches(['\'', '"']).to_owned());
        while here.is_some() || command.ends_with('\\') {
            let Some((_, next)) = lines.next() else { break };
            command.push('\n');
            command.push_str(next);
            if here.as_deref() == Some(next) {
                break;
            }
        }
        steps.push(Step { line: block.line + index, what: What::Command(command) });
    }
    steps
}

#[test]
fn a_guide_is_files_commands_and_outputs_in_their_order() {
    let guide = "# Title\n\n```toml\n# a/b.toml\nx = 1\n```\nText\n```toml\n# in a/b.toml\ny = 2\n```\n\
                 ```toml\nz = 3\n```\n```sh\none  # first\n\n# only words\ntwo \\\n  more\nthree <<'END'\nbody\nEND\n\
                 four\n```\n```output\nit is so\n```\n```json\n{}\n```\n";
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let ((path, text), (more_path, more)) =
        (file("a/b.toml", "# a/b.toml\nx = 1\n"), file("a/b.toml", "# in a/b.toml\ny = 2\n"));
    let wanted = [
        (4, What::File { path, text }),
        (9, What::More { path: more_path, text: more }),
        (13, What::Fragment("z = 3\n".to_owned())),
        (16, What::Command("one  # first".to_owned())),
        (19, What::Command("two \\\n  more".to_owned())),
        (21, What::Command("three <<'END'\nbody\nEND".to_owned())),
        (24, What::Command("four".to_owned())),
        (27, What::Output("it is so\n".to_owned())),
    ];
    let wanted: Vec<_> = wanted.into_iter().map(|(line, what)| Step { line, what }).collect();
    assert_eq!(steps(guide).unwrap(), wanted);
}

#[test]
fn a_block_without_end_and_one_of_another_shell_are_refused() {
    assert_eq!(steps("```sh\nls\n").unwrap_err(), "the block of line 2 has no end");
    assert_eq!(steps("```bash\nls\n```\n").unwrap_err(), "line 2: write `sh` there");
}
