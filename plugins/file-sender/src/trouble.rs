//! What an error of the folder means for the messages.

use portway_sdk::{Problem, Trouble, files};

/// As far as no message is to blame: none where it depends on the message.
pub fn of_folder(error: &files::Error, path: &str) -> Option<Trouble> {
    match error {
        files::Error::Full => Some(Trouble::unavailable(
            "disk-full",
            format!("there is no room left in the folder to write `{path}`"),
        )),
        files::Error::Unavailable(text) => {
            Some(Trouble::unavailable("folder-unavailable", format!("cannot write `{path}`: {text}")))
        }
        files::Error::NotFound => Some(Trouble::unavailable(
            "no-folder",
            format!("cannot write `{path}`: the folder it belongs into does not exist"),
        )),
        files::Error::Denied => Some(Trouble::misconfigured(
            "denied",
            format!(
                "`{path}` may not be written: grant the folder with write access, and check its permissions"
            ),
        )),
        files::Error::Unsupported => Some(Trouble::misconfigured(
            "unsupported",
            format!("cannot write `{path}`: this kind of folder cannot do that"),
        )),
        files::Error::Exists | files::Error::NotAFile | files::Error::Other(_) => None,
    }
}

/// For one message that was to become a file of its own.
pub fn of_message(error: files::Error, path: &str) -> Problem {
    match of_folder(&error, path) {
        Some(trouble) => trouble.into(),
        None if matches!(error, files::Error::Other(_)) => {
            Problem::retry("write-failed", format!("cannot write `{path}`: {error}"))
        }
        None => Problem::quarantine("name-taken", format!("cannot write `{path}`: {error}")),
    }
}

/// For a whole run that was to be appended.
pub fn of_run(error: files::Error, path: &str) -> Trouble {
    match of_folder(&error, path) {
        Some(trouble) => trouble,
        None if matches!(error, files::Error::NotAFile) => Trouble::misconfigured(
            "not-a-file",
            format!("`{path}` is not a regular file, so nothing can be appended to it"),
        ),
        None => Trouble::unavailable("write-failed", format!("cannot append to `{path}`: {error}")),
    }
}
