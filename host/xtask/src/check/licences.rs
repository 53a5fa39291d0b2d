//! Which licences what we ship may have.

use anyhow::{Context, Result};
use serde_json::Value;

const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages whose licence expression cannot be met by the list.
pub fn findings(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata without packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let finding = match package["license"].as_str() {
            None => Some("has no licence expression".to_owned()),
            Some(expression) => refused(expression),
        };
        if let Some(text) = finding {
            findings
                .push(format!("{name}: {text} (licences allowed are in host/xtask/src/check/licences.rs)"));
        }
    }
    Ok(findings)
}

fn refused(expression: &str) -> Option<String> {
    // The old slash means OR; `spdx` reads it in its lax mode.
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX);
    match parsed {
        Err(error) => Some(format!("licence `{expression}` cannot be read: {error}")),
        Ok(parsed) => {
            let is_met = parsed.evaluate(|requirement| ALLOWED.contains(&requirement.to_string().as_str()));
            (!is_met).then(|| format!("licence `{expression}` is not allowed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_choice_is_enough_and_all_parts_must_be_allowed() {
        assert_eq!(refused("MIT OR GPL-3.0-only"), None);
        assert_eq!(refused("MIT/Apache-2.0"), None);
        assert_eq!(refused("Apache-2.0 WITH LLVM-exception"), None);
        assert!(refused("MIT AND GPL-3.0-only").is_some());
        assert!(refused("AGPL-3.0-only").is_some());
        assert!(refused("whatever you like").is_some());
    }
}
