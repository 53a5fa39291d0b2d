//! Conditions and bodies as they are written in settings.
//!
//! Which of them make sense together is checked in `compile`.

use std::fmt;

use portway_sdk::Failure;
use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

/// Whole numbers up to here are exact.
const WHOLE_MAX: u64 = 1 << 53;

/// What the bodies are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    /// They are not looked at.
    #[default]
    Attributes,
    Hl7,
    Json,
    Csv,
}

/// Whether capitals differ from small letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    #[default]
    Sensitive,
    Ignore,
}

/// How tables are written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CsvSettings {
    /// Whether the first record names the columns.
    pub header: bool,
    pub separator: String,
    /// Empty: nothing is quoted.
    pub quote: String,
}

impl Default for CsvSettings {
    fn default() -> Self {
        CsvSettings { header: true, separator: ",".into(), quote: "\"".into() }
    }
}

/// How bodies are read.
#[derive(Clone, Debug, Default)]
pub struct BodySettings {
    pub kind: BodyKind,
    pub csv: CsvSettings,
    /// Of HL7 that leaves MSH-18 empty, and of tables. Empty: UTF-8.
    pub charset: String,
}

/// Where values stand.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlaceSettings {
    /// In the body.
    pub path: Option<String>,
    pub attribute: Option<String>,
    /// The message's key.
    pub key: bool,
}

/// A condition: a place and what is asked of it, or several conditions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConditionSettings {
    pub path: Option<String>,
    pub attribute: Option<String>,
    pub key: bool,
    pub equals: Option<Scalar>,
    pub one_of: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "one_or_many")]
    pub not: Option<Vec<Scalar>>,
    pub begins_with: Option<String>,
    pub contains: Option<String>,
    pub matches: Option<String>,
    pub exists: Option<bool>,
    pub empty: Option<bool>,
    pub greater: Option<f64>,
    pub less: Option<f64>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    pub all: Option<Vec<ConditionSettings>>,
    pub any: Option<Vec<ConditionSettings>>,
    pub none: Option<Vec<ConditionSettings>>,
}

impl ConditionSettings {
    /// Its place, without what is asked.
    pub fn place(&self) -> PlaceSettings {
        PlaceSettings { path: self.path.clone(), attribute: self.attribute.clone(), key: self.key }
    }

    /// The condition that a place has this value.
    pub fn equals(place: &PlaceSettings, value: &str) -> ConditionSettings {
        ConditionSettings {
            path: place.path.clone(),
            attribute: place.attribute.clone(),
            key: place.key,
            equals: Some(Scalar::Text(value.to_owned())),
            ..ConditionSettings::default()
        }
    }
}

/// A value to compare with.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Text(String),
    Number(f64),
    Truth(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => write!(f, "`{text}`"),
            Scalar::Number(number) => write!(f, "{number}"),
            Scalar::Truth(truth) => write!(f, "{truth}"),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, `true` or `false`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar::Truth(truth))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
        if number.unsigned_abs() > WHOLE_MAX {
            return Err(E::custom(format!("the number {number} has too many digits: write it as a text")));
        }
        Ok(Scalar::Number(number as f64))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Scalar, E> {
        let number = i64::try_from(number).map_err(|_| E::custom("the number has too many digits"))?;
        self.visit_i64(number)
    }
}

/// A value, or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Scalar>>, D::Error> {
    deserializer.deserialize_any(OneOrMany).map(Some)
}

struct OneOrMany;

impl<'de> Visitor<'de> for OneOrMany {
    type Value = Vec<Scalar>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, `true`, `false`, or a list of these")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Scalar>, E> {
        ScalarVisitor.visit_str(text).map(|one| vec![one])
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Vec<Scalar>, E> {
        Ok(vec![Scalar::Truth(truth)])
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Vec<Scalar>, E> {
        Ok(vec![Scalar::Number(number)])
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Vec<Scalar>, E> {
        ScalarVisitor.visit_i64(number).map(|one| vec![one])
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Vec<Scalar>, E> {
        ScalarVisitor.visit_u64(number).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Scalar>, A::Error> {
        let mut scalars = Vec::new();
        while let Some(scalar) = list.next_element()? {
            scalars.push(scalar);
        }
        Ok(scalars)
    }
}

/// A setting that does not fit, with its place in the settings.
pub(crate) fn unfit(at: &str, why: impl fmt::Display) -> Failure {
    Failure::new("bad-settings", format!("setting `{at}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<ConditionSettings, String> {
        portway_sdk::parse_settings(json).map_err(|failure| failure.text)
    }

    #[test]
    fn values_are_texts_numbers_and_truths() {
        let settings = read(r#"{"path":"A","one_of":["a",1,-2.5,true],"not":"x"}"#).unwrap();
        let texts: Vec<String> = settings.one_of.unwrap().iter().map(Scalar::to_string).collect();
        assert_eq!(texts, ["`a`", "1", "-2.5", "true"]);
        assert_eq!(settings.not, Some(vec![Scalar::Text("x".into())]));
        assert_eq!(read(r#"{"not":["a",2]}"#).unwrap().not.map(|not| not.len()), Some(2));
    }

    #[test]
    fn what_is_no_condition_is_named() {
        let complaint = |json: &str| read(json).unwrap_err();
        assert!(complaint(r#"{"equal":"a"}"#).starts_with("setting `equal`: unknown field"));
        assert!(complaint(r#"{"equals":["a"]}"#).contains("expected a text, a number"));
        assert!(complaint(r#"{"any":[{"equals":9007199254740993}]}"#).contains("write it as a text"));
        assert!(complaint(r#"{"equals":18446744073709551615}"#).contains("too many digits"));
    }
}
