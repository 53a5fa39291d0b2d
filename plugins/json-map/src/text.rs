//! Texts with values in them: `{{/family}}, {{/given|unknown}}`.

use std::fmt;
use std::str::FromStr;

use portway_json::{Path, PathError};

/// Such a text, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextTemplate {
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    /// The value at a path, and what stands there where it is missing or null.
    Value {
        path: Path,
        default: Option<String>,
    },
}

/// Why a text is no such template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextError {
    Open,
    Path { written: String, error: PathError },
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Open => f.write_str(
                "`{{` has no `}}` behind it; a text that holds `{{` is written `{ literal = \"…\" }`",
            ),
            TextError::Path { written, error } => write!(f, "`{{{{{written}}}}}`: {error}"),
        }
    }
}

/// Whether there is a value in a text.
pub(crate) fn has_values(text: &str) -> bool {
    text.contains("{{")
}

impl FromStr for TextTemplate {
    type Err = TextError;

    fn from_str(text: &str) -> Result<TextTemplate, TextError> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (written, behind) = after.split_once("}}").ok_or(TextError::Open)?;
            if !before.is_empty() {
                pieces.push(Piece::Literal(before.to_owned()));
            }
            let (path, default) = match written.split_once('|') {
                Some((path, default)) => (path, Some(default.to_owned())),
                None => (written, None),
            };
            let path = path.trim().parse();
            let path = path.map_err(|error| TextError::Path { written: written.to_owned(), error })?;
            pieces.push(Piece::Value { path, default });
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Ok(TextTemplate { pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_between_double_braces() {
        let template: TextTemplate = "a {{ /b }}{{c.0|no value}}}".parse().unwrap();
        let expected = [
            Piece::Literal("a ".into()),
            Piece::Value { path: "/b".parse().unwrap(), default: None },
            Piece::Value { path: "c.0".parse().unwrap(), default: Some("no value".into()) },
            Piece::Literal("}".into()),
        ];
        assert_eq!(template.pieces, expected);
        assert_eq!("{{a".parse::<TextTemplate>(), Err(TextError::Open));
        let error = "{{a..b}}".parse::<TextTemplate>().unwrap_err();
        assert!(error.to_string().starts_with("`{{a..b}}`: a name between dots"), "{error}");
    }
}
