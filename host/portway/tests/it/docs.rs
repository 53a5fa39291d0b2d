//! The generated reference pages are those that the code makes.

use std::path::Path;

use portway::commands::gen_docs::pages;

#[test]
fn the_reference_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, wanted) in pages() {
        let path = folder.join(name);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "docs/reference/{name} is not what the code makes: run `cargo xtask gen`");
    }
}
