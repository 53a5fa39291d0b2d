//! Grants of secrets to plugins: to read one, or to have the host sign with it.

use portway_model::code;
use serde_json::Value as Json;
use toml::de::DeValue;

use crate::Secret;
use crate::list::words;
use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::secrets_file::is_secret_name;
use crate::template::{self, Mark};
use crate::value::Value;

group! {
    /// A secret whose value a plugin may read, with `type = "reveal"`.
    /// The plugin can show it to whomever it reaches; where it only needs a signature, `sign` is enough.
    RevealGrantSettings at "grants.NAME (reveal)" in "interfaces/*.toml" tag "type" {
        /// The secret, as `${secret:NAME}` and nothing else.
        secret: NamedSecret, marked(Secret);
        /// What the secret's text stands for.
        form: SecretForm = SecretForm::Text;
    }
}

group! {
    /// A key that the host signs with for a plugin, which never sees it, with `type = "sign"`.
    SignGrantSettings at "grants.NAME (sign)" in "interfaces/*.toml" tag "type" {
        /// The secret, as `${secret:NAME}` and nothing else.
        secret: NamedSecret, marked(Secret);
        /// What the secret's text stands for.
        form: SecretForm = SecretForm::Text;
    }
}

/// How the bytes of a secret are written in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretForm {
    /// They are the text.
    #[default]
    Text,
    Base64,
    Hex,
}

words!(SecretForm { "text" => SecretForm::Text, "base64" => SecretForm::Base64, "hex" => SecretForm::Hex });

/// A secret and what the project calls it: its uses are recorded under the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSecret {
    pub name: String,
    pub value: Secret,
}

impl Value for NamedSecret {
    fn type_name() -> String {
        "secret".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write `\"${secret:NAME}\"`; the value itself does not belong into a project file";
        let DeValue::String(text) = node.value else {
            reader.report_type_with(node, "a reference to a secret", Some(hint.to_owned()));
            return None;
        };
        let name = text.strip_prefix("${secret:").and_then(|rest| rest.strip_suffix('}'));
        let Some(name) = name.filter(|name| is_secret_name(name)) else {
            let text = format!("`{}` is no reference to one secret", node.key);
            reader.report(node.span.start, code::BAD_REFERENCE, text, Some(hint.to_owned()));
            return None;
        };
        match template::resolve(text, Mark::Secret, reader.names) {
            Ok(value) => Some(NamedSecret { name: name.to_owned(), value: Secret::new(value) }),
            Err(unresolved) => {
                let text = format!("`{}`: {}", node.key, unresolved.text);
                reader.report(node.span.start, code::BAD_REFERENCE, text, Some(unresolved.hint));
                None
            }
        }
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::form(r"^\$\{secret:[A-Za-z0-9_]{1,128}\}$")
    }

    fn show(&self) -> String {
        format!("\"${{secret:{}}}\"", self.name)
    }
}

#[cfg(test)]
mod tests {
    use crate::GrantSettings;
    use crate::tests::{destination, problems_of_sender};

    #[test]
    fn a_granted_secret_keeps_its_name_and_hides_its_value() {
        let sender = "[destination.sender]\nplugin = \"x\"\n\
             grants.key = { type = \"sign\", secret = \"${secret:T}\" }\n\
             grants.pass = { type = \"reveal\", secret = \"${secret:T}\", form = \"hex\" }\n";
        let grants = destination(sender).sender.unwrap().grants;
        let shown = format!("{grants:?}");
        assert!(shown.contains("name: \"T\"") && !shown.contains("s3cret"), "{shown}");
        let GrantSettings::Sign(sign) = &grants.values().next().unwrap().value else { panic!("no sign") };
        assert_eq!(sign.secret.value.reveal(), "s3cret");
    }

    #[test]
    fn a_value_in_the_project_file_is_refused_and_not_shown() {
        for secret in ["hunter2", "x${secret:T}", "${env:T}", "${secret:}"] {
            let problems =
                problems_of_sender(&format!("grants.key = {{ type = \"sign\", secret = \"{secret}\" }}"));
            assert!(problems.contains("`secret` is no reference to one secret"), "{problems}");
            assert!(!problems.contains("hunter2"), "{problems}");
        }
    }
}
