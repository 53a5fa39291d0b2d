//! Grants of state to plugins: small values that outlive a call.

use crate::{Name, PluginUse};

group! {
    /// Values that a plugin keeps for one destination, with `type = "state"`.
    /// What it writes for a message is stored together with the message's outcome.
    StateGrantSettings at "grants.NAME (state)" in "interfaces/*.toml" tag "type" {
        /// What the state is called within its destination; none: the name of the plugin.
        /// It is what keeps the values with their plugin when others are added before it.
        name: Option<Name>;
        /// Values it may have.
        keys_max: u32 = 10_000, within(1, 1_000_000);
    }
}

impl StateGrantSettings {
    /// What the state is called within its destination.
    pub fn space<'s>(&'s self, plugin_use: &'s PluginUse) -> &'s Name {
        self.name.as_ref().unwrap_or(&plugin_use.plugin.value)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::destination;

    #[test]
    fn two_uses_of_a_plugin_need_names_of_their_own() {
        let transform = |grant: &str| {
            format!(
                "[[destination.transform]]\nplugin = \"x\"\ngrants.seen = {{ type = \"state\"{grant} }}\n"
            )
        };
        let problems = |second: &str| {
            let text = format!(
                "[[destination]]\nname = \"d\"\nroute = \"r\"\n{}{}",
                transform(""),
                transform(second)
            );
            crate::check_text("interfaces/t.toml", &text).to_string()
        };
        assert!(problems("").contains("two plugins of destination `d` keep a state `x`"), "{}", problems(""));
        assert_eq!(problems(", name = \"second\", keys_max = 5"), "");
        assert!(problems(", keys_max = 0").contains("outside its limits"));
        assert_eq!(destination(&format!("route = \"r\"\n{}", transform(""))).transform.len(), 1);
    }
}
