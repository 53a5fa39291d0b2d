//! Projects with an encrypted file of secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::project;
use crate::{
    Change, CredentialSettings, Draft, EncryptedFile, Environment, GrantSettings, Secret, make_identity,
    read_in,
};

/// A project that needs the secret `T`, and a folder outside it for identities.
struct House {
    project: tempfile::TempDir,
    outside: tempfile::TempDir,
}

impl House {
    fn new() -> House {
        let sender = "[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:1\"\n[[destination]]\nname = \"d\"\n\
             [destination.sender]\nplugin = \"http\"\n\
             grants.api = { type = \"http\", url = \"http://h/\", credentials = { type = \"bearer\", token = \"${secret:T}\" } }\n";
        let files = [("portway.toml", ""), ("interfaces/a.toml", sender), ("environments/test.toml", "")];
        House { project: project(&files), outside: tempfile::tempdir().unwrap() }
    }

    fn dir(&self) -> &Path {
        self.project.path()
    }

    /// An identity of this name, made if there is none, and its recipient.
    fn identity(&self, name: &str) -> (PathBuf, String) {
        let path = self.outside.path().join("keys").join(name);
        if !path.exists() {
            make_identity(&path).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        (path, text.lines().next().unwrap().trim_start_matches("# recipient: ").to_owned())
    }

    fn environment(&self, name: &str) -> Environment {
        Environment::default().with_identity(&self.identity(name).0)
    }

    fn set(&self, place: Option<&str>, value: &str, by: &str) -> Result<Change, String> {
        let file = EncryptedFile::of(self.dir(), place);
        file.set("T", Secret::new(value), &self.environment(by)).map_err(|error| error.to_string())
    }
}

/// The token of the project, if it has no problems.
fn token(draft: Draft) -> Result<String, String> {
    let project = draft.finish().map_err(|problems| problems.to_string())?;
    let sender = project.interfaces[0].destinations[0].sender.as_ref().unwrap();
    let GrantSettings::Http(http) = &sender.grants.values().next().unwrap().value else { panic!() };
    let Some(CredentialSettings::Bearer(bearer)) = &http.credentials else { panic!() };
    Ok(bearer.token.reveal().to_owned())
}

#[test]
fn each_place_has_its_own_file_and_the_first_source_wins() {
    let house = House::new();
    assert_eq!(house.set(None, "shared", "me"), Ok(Change::Added));
    assert_eq!(house.set(Some("test"), "of test \"\n\\é", "me"), Ok(Change::Added));
    assert_eq!(house.set(Some("test"), "of test", "me"), Ok(Change::Replaced));
    let environment = house.environment("me");
    assert_eq!(token(read_in(house.dir(), &environment, None)).unwrap(), "shared");
    assert_eq!(token(read_in(house.dir(), &environment, Some("test"))).unwrap(), "of test");
    for file in ["secrets.age", "environments/test.secrets.age"] {
        let text = fs::read_to_string(house.dir().join(file)).unwrap();
        assert!(text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----") && !text.contains("test\""), "{text}");
    }

    let plain = house.dir().join("secrets.toml");
    fs::write(&plain, "T = \"of the machine\"\n").unwrap();
    fs::set_permissions(&plain, Permissions::from_mode(0o600)).unwrap();
    let draft = read_in(house.dir(), &environment, Some("test"));
    assert_eq!(draft.secrets()[0].from, ["secrets.toml", "environments/test.secrets.age"]);
    assert_eq!(token(draft).unwrap(), "of the machine");
    let process = Environment::of_pairs([("PORTWAY_SECRET_T", "of the process")]);
    assert_eq!(token(read_in(house.dir(), &process, Some("test"))).unwrap(), "of the process");
}

#[test]
fn a_secret_that_is_nowhere_says_where_it_was_looked_for() {
    let house = House::new();
    let missing = token(read_in(house.dir(), &Environment::default(), Some("test"))).unwrap_err();
    for words in [
        "interfaces/a.toml:8:91: `token`: `${secret:T}` has no value",
        "the environment variable `PORTWAY_SECRET_T`, `secrets.toml` (there is none), \
         `environments/test.secrets.age` (there is none)",
        "set it with `portway secrets set T --env test`",
    ] {
        assert!(missing.contains(words), "`{words}` is not said: {missing}");
    }
    house.set(None, "x", "me").unwrap();
    let locked = token(read_in(house.dir(), &Environment::default(), None)).unwrap_err();
    assert!(
        locked.contains("`secrets.age` (not opened: name an identity with `PORTWAY_IDENTITY`)"),
        "{locked}"
    );
    let set = Environment::of_pairs([("PORTWAY_SECRET_T", "x")]);
    assert_eq!(token(read_in(house.dir(), &set, None)).unwrap(), "x", "what is not needed stays closed");
}

#[test]
fn an_identity_that_does_not_do_is_refused_with_its_reason() {
    let house = House::new();
    house.set(None, "hunter2", "me").unwrap();
    let refused = |path: &Path| {
        let environment = Environment::of_pairs([("PORTWAY_SECRET_T", "x")]).with_identity(path);
        token(read_in(house.dir(), &environment, None)).unwrap_err()
    };
    let (other, _) = house.identity("other");
    assert!(refused(&other).contains("secrets.age: `secrets.age` is not encrypted for the identity"));
    assert!(refused(Path::new("/nowhere/at/all")).contains("cannot be read"));
    let (mine, _) = house.identity("me");
    fs::set_permissions(&mine, Permissions::from_mode(0o640)).unwrap();
    assert!(refused(&mine).contains("can be read by others than its owner"));
    fs::set_permissions(&mine, Permissions::from_mode(0o600)).unwrap();
    let inside = house.dir().join("identity");
    fs::copy(&mine, &inside).unwrap();
    assert!(refused(&inside).contains("stands in the project"));
    let odd = house.outside.path().join("odd");
    fs::copy(&mine, &odd).unwrap();
    fs::write(&odd, "AGE-SECRET-KEY-1QQQ\n").unwrap();
    let said = refused(&odd);
    assert!(said.contains("holds something else than age identities") && !said.contains("QQQ"), "{said}");
    fs::write(&odd, "# nothing\n").unwrap();
    assert!(refused(&odd).contains("holds something else than age identities"));
}

#[test]
fn a_file_that_is_damaged_or_none_of_age_is_a_problem() {
    let house = House::new();
    house.set(None, "hunter2", "me").unwrap();
    let path = house.dir().join("secrets.age");
    let good = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = good.lines().collect();
    lines.remove(lines.len() - 2);
    let cut = lines.join("\n");
    for bad in ["", "T = \"hunter2\"\n", &cut, &good[..60]] {
        fs::write(&path, bad).unwrap();
        let said = token(read_in(house.dir(), &house.environment("me"), None)).unwrap_err();
        let known = said.contains("is damaged") || said.contains("is not a file of age");
        assert!(known && !said.contains("hunter2"), "{said}");
        assert!(house.set(None, "new", "me").is_err(), "what cannot be read is not written over");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
}

#[test]
fn recipients_are_those_of_their_file_and_the_writer_among_them() {
    let house = House::new();
    let recipients = house.dir().join("secrets.recipients");
    let (_, other) = house.identity("other");
    fs::write(&recipients, format!("# the operator\n{other}\n")).unwrap();
    let refused = house.set(None, "x", "me").unwrap_err();
    assert!(refused.contains("`secrets.recipients` lacks `age1"), "{refused}");
    let (_, me) = house.identity("me");
    fs::write(&recipients, format!("{other}\n{me}\n")).unwrap();
    house.set(None, "both read it", "me").unwrap();
    for who in ["me", "other"] {
        assert_eq!(token(read_in(house.dir(), &house.environment(who), None)).unwrap(), "both read it");
    }
    fs::write(&recipients, "ssh-ed25519 AAAA\n").unwrap();
    assert!(house.set(None, "x", "me").unwrap_err().contains("holds no recipient `age1…` in line 1"));
}

#[test]
fn a_secret_is_removed_and_what_is_not_there_changes_nothing() {
    let house = House::new();
    let file = EncryptedFile::of(house.dir(), None);
    let environment = house.environment("me");
    assert_eq!(file.remove("T", &environment).unwrap(), Change::None);
    assert!(!house.dir().join("secrets.age").exists());
    house.set(None, "x", "me").unwrap();
    assert_eq!(file.remove("T", &environment).unwrap(), Change::Removed);
    assert!(token(read_in(house.dir(), &environment, None)).unwrap_err().contains("has no value"));
    assert!(file.set("a-b", Secret::new("x"), &environment).unwrap_err().hint().is_some());
    let without = file.set("T", Secret::new("x"), &Environment::default()).unwrap_err();
    assert!(without.to_string().contains("no identity is named"), "{without}");
    let made_again = make_identity(&house.identity("me").0).unwrap_err();
    assert!(made_again.to_string().contains("cannot be written"), "{made_again}");
    let mode = fs::metadata(house.identity("me").0).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
