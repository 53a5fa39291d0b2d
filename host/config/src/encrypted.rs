//! The encrypted file of secrets, one for each place a project runs at, in the format of age
//! (https://age-encryption.org/v1), so that other tools open it, too.
//!
//! Inside it is a `secrets.toml`. It may stand in version control: what opens it is an identity that
//! stands outside the project. Who can open it is said in a file of recipients beside it. No error
//! repeats anything of what was decrypted or of an identity.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use age::armor::{ArmoredReader, ArmoredWriter, Format};
use age::secrecy::ExposeSecret;
use age::{DecryptError, Decryptor, Encryptor, IdentityFile};
use portway_model::code;
use zeroize::Zeroizing;

use crate::files::read_text;
use crate::secrets::Found;
use crate::secrets_file::{is_open_to_others, is_secret_name, parse_secrets};
use crate::{Environment, Place, Problem, Project, Secret};

/// Bytes of what is decrypted; the file itself has the limit of every project file.
const PLAIN_BYTES_MAX: u64 = 1 << 20;
/// Who can open one file.
const RECIPIENTS_MAX: usize = 100;

/// The encrypted file of a project for one place.
#[derive(Clone, Debug)]
pub struct EncryptedFile {
    dir: PathBuf,
    shown: String,
    recipients: String,
}

/// Why an encrypted file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum EncryptedError {
    #[error("no identity is named that opens `{file}`")]
    NoIdentity { file: String },
    #[error("the identity `{path}` {why}")]
    Identity { path: String, why: String },
    #[error("`{file}` {why}")]
    File { file: String, why: String },
    #[error("`{file}` cannot be written")]
    Write {
        file: String,
        #[source]
        source: io::Error,
    },
    #[error("`{0}` is not the name of a secret")]
    Name(String),
}

impl EncryptedError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            EncryptedError::Write { .. } => code::FILE_UNREADABLE,
            _ => code::BAD_SECRETS,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EncryptedError::NoIdentity { .. } => Some(
                "name one with `--identity FILE` or `PORTWAY_IDENTITY`; `portway secrets make-identity FILE` makes one",
            ),
            EncryptedError::Name(_) => Some("names have letters, digits and `_`, at most 128"),
            EncryptedError::Identity { .. } | EncryptedError::File { .. } | EncryptedError::Write { .. } => {
                None
            }
        }
    }
}

/// Whether a name was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Replaced,
    Removed,
    /// There was nothing to remove.
    None,
}

/// Identities from their file, and the recipients they are.
struct Identities {
    path: String,
    keys: Vec<Box<dyn age::Identity + Send + Sync>>,
    recipients: Vec<String>,
}

impl EncryptedFile {
    /// The one for a place; without a place the project's own.
    pub fn of(dir: &Path, place: Option<&str>) -> EncryptedFile {
        let base = match place {
            None => "secrets".to_owned(),
            Some(place) => format!("{}/{place}.secrets", Project::ENVIRONMENTS),
        };
        EncryptedFile {
            dir: dir.to_owned(),
            shown: format!("{base}.age"),
            recipients: format!("{base}.recipients"),
        }
    }

    /// Its path in the project.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Puts a secret into it, and makes it where there is none.
    pub fn set(
        &self,
        name: &str,
        value: Secret,
        environment: &Environment,
    ) -> Result<Change, EncryptedError> {
        if !is_secret_name(name) {
            return Err(EncryptedError::Name(name.chars().take(128).collect()));
        }
        self.change(environment, |secrets| match secrets.insert(name.to_owned(), value) {
            None => Change::Added,
            Some(_) => Change::Replaced,
        })
    }

    /// Takes a secret out of it.
    pub fn remove(&self, name: &str, environment: &Environment) -> Result<Change, EncryptedError> {
        self.change(environment, |secrets| match secrets.remove(name) {
            None => Change::None,
            Some(_) => Change::Removed,
        })
    }

    fn change(
        &self,
        environment: &Environment,
        change: impl FnOnce(&mut BTreeMap<String, Secret>) -> Change,
    ) -> Result<Change, EncryptedError> {
        let identities = self
            .identities(environment)?
            .ok_or_else(|| EncryptedError::NoIdentity { file: self.shown.clone() })?;
        let mut secrets = match self.is_there() {
            false => BTreeMap::new(),
            true => {
                let text = self.decrypt(&identities)?;
                let (secrets, problems) = parse_secrets(&self.shown, &text);
                match problems.first() {
                    None => secrets,
                    Some(problem) => {
                        return Err(self.bad(format!(
                            "holds something else than secrets, in line {}",
                            problem.place.line
                        )));
                    }
                }
            }
        };
        let changed = change(&mut secrets);
        if changed != Change::None {
            self.write(&secrets, &identities)?;
        }
        Ok(changed)
    }

    fn path(&self) -> PathBuf {
        self.dir.join(&self.shown)
    }

    fn is_there(&self) -> bool {
        self.path().symlink_metadata().is_ok()
    }

    fn bad(&self, why: impl Into<String>) -> EncryptedError {
        EncryptedError::File { file: self.shown.clone(), why: why.into() }
    }

    /// Those that the environment names; none: it names none.
    fn identities(&self, environment: &Environment) -> Result<Option<Identities>, EncryptedError> {
        let Some(shown) = environment.get(Environment::IDENTITY).filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let bad = |why: String| EncryptedError::Identity { path: shown.to_owned(), why };
        let unreadable = |error: io::Error| bad(format!("cannot be read: {error}"));
        let path = fs::canonicalize(shown).map_err(unreadable)?;
        let project = fs::canonicalize(&self.dir).map_err(unreadable)?;
        if path.starts_with(&project) {
            return Err(bad("stands in the project, whose files it opens; keep it elsewhere".into()));
        }
        if is_open_to_others(&fs::metadata(&path).map_err(unreadable)?) {
            return Err(bad("can be read by others than its owner; run `chmod 600` on it".into()));
        }
        let text = Zeroizing::new(read_text(&path).map_err(bad)?);
        let holds_none =
            || bad("holds something else than age identities, `AGE-SECRET-KEY-1…` one a line".into());
        let file = IdentityFile::from_buffer(text.as_bytes()).map_err(|_| holds_none())?;
        let mut recipients = Vec::new();
        file.write_recipients_file(&mut recipients).map_err(|_| holds_none())?;
        let recipients = String::from_utf8_lossy(&recipients).lines().map(str::to_owned).collect();
        let keys = file.into_identities().map_err(|_| holds_none())?;
        Ok(Some(Identities { path: shown.to_owned(), keys, recipients }))
    }

    fn decrypt(&self, identities: &Identities) -> Result<Zeroizing<String>, EncryptedError> {
        let text = read_text(&self.path()).map_err(|why| self.bad(why))?;
        let opened = Decryptor::new(ArmoredReader::new(text.as_bytes()));
        let decryptor = opened.map_err(|error| self.not_decrypted(&error, identities))?;
        let keys = identities.keys.iter().map(|key| key.as_ref() as &dyn age::Identity);
        let reader = decryptor.decrypt(keys).map_err(|error| self.not_decrypted(&error, identities))?;
        let mut plain = Zeroizing::new(Vec::with_capacity(text.len()));
        let read = reader.take(PLAIN_BYTES_MAX).read_to_end(&mut plain);
        read.map_err(|_| self.bad("is damaged"))?;
        match std::str::from_utf8(&plain) {
            Ok(text) => Ok(Zeroizing::new(text.to_owned())),
            Err(_) => Err(self.bad("holds no text")),
        }
    }

    fn not_decrypted(&self, error: &DecryptError, identities: &Identities) -> EncryptedError {
        match error {
            DecryptError::NoMatchingKeys => {
                let Identities { path, .. } = identities;
                self.bad(format!("is not encrypted for the identity `{path}`"))
            }
            DecryptError::UnknownFormat | DecryptError::InvalidHeader => self.bad("is not a file of age"),
            _ => self.bad("is damaged"),
        }
    }

    /// Who can open the file: those of the recipients' file, else who writes it.
    fn recipients(&self, identities: &Identities) -> Result<Vec<age::x25519::Recipient>, EncryptedError> {
        let bad = |why: String| EncryptedError::File { file: self.recipients.clone(), why };
        let path = self.dir.join(&self.recipients);
        let text = match path.symlink_metadata() {
            Ok(_) => read_text(&path).map_err(bad)?,
            Err(_) => identities.recipients.join("\n"),
        };
        let mut recipients = Vec::new();
        let mut includes_writer = false;
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let recipient =
                text.parse().map_err(|_| bad(format!("holds no recipient `age1…` in line {line}")))?;
            recipients.push(recipient);
            includes_writer |= identities.recipients.iter().any(|own| own == text);
        }
        if recipients.len() > RECIPIENTS_MAX {
            return Err(bad(format!("has more than {RECIPIENTS_MAX} recipients")));
        }
        if !includes_writer {
            let own = identities.recipients.join("`, `");
            return Err(bad(format!(
                "lacks `{own}`: whoever writes the file has to be able to open it again"
            )));
        }
        Ok(recipients)
    }

    /// Writes it whole or not at all.
    fn write(
        &self,
        secrets: &BTreeMap<String, Secret>,
        identities: &Identities,
    ) -> Result<(), EncryptedError> {
        let recipients = self.recipients(identities)?;
        let values: BTreeMap<&str, &str> =
            secrets.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        let plain =
            toml::to_string(&values).map(Zeroizing::new).map_err(|_| self.bad("cannot hold this value"))?;
        if plain.len() as u64 > PLAIN_BYTES_MAX / 2 {
            return Err(self.bad(format!("would be larger than {} bytes", PLAIN_BYTES_MAX / 2)));
        }
        let failed = |source| EncryptedError::Write { file: self.shown.clone(), source };
        let encrypted = encrypt(&recipients, plain.as_bytes()).map_err(failed)?;
        let path = self.path();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let beside = path.with_extension(format!("age.{}", std::process::id()));
        let written = replace(&beside, &path, &encrypted);
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.map_err(failed)
    }
}

fn encrypt(recipients: &[age::x25519::Recipient], plain: &[u8]) -> io::Result<Vec<u8>> {
    let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
    let encryptor = Encryptor::with_recipients(recipients).map_err(io::Error::other)?;
    let armor = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
    let mut writer = encryptor.wrap_output(armor)?;
    writer.write_all(plain)?;
    writer.finish()?.finish()
}

fn replace(beside: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(beside, path)
}

/// Makes an identity in a new file that only its owner can read; says what it is as a recipient.
pub fn make_identity(path: &Path) -> Result<String, EncryptedError> {
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let failed = |source| EncryptedError::Write { file: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
            writeln!(file, "# recipient: {recipient}")?;
            writeln!(file, "{}", identity.to_string().expose_secret())?;
            file.sync_all()
        });
    written.map_err(failed)?;
    Ok(recipient)
}

/// What a project's encrypted file holds, where it can be opened.
pub(crate) fn read_layer(
    file: &EncryptedFile,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Found {
    if !file.is_there() {
        return Found::NoFile;
    }
    let opened = match file.identities(environment) {
        Ok(None) => return Found::Locked,
        Ok(Some(identities)) => file.decrypt(&identities),
        Err(error) => Err(error),
    };
    match opened {
        Ok(text) => {
            let (secrets, found) = parse_secrets(&file.shown, &text);
            problems.extend(found);
            Found::Read(secrets)
        }
        Err(error) => {
            problems.push(Problem::new(Place::of_file(&file.shown), error.code(), error.to_string()));
            Found::Unusable
        }
    }
}
