//! Connections that nobody reads along, as `sslmode` says.

use portway_store_postgres::{OpenError, PostgresSettings, PostgresStore};
use portway_testkit_postgres::{ClusterSettings, Programs, ServerCertificate};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::harness::{Server, message, register, store};

/// A server that speaks TLS alone, and the certificate of who vouches for it, in a file.
struct Safe {
    server: Server,
    authority: tempfile::NamedTempFile,
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

impl Safe {
    fn start() -> Safe {
        let vouches = authority("an authority of this test");
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &vouches).unwrap().pem();
        let access = "local all all trust\nhostssl all all 127.0.0.1/32 trust\nhostssl all all ::1/128 trust";
        let settings = ClusterSettings {
            certificate: Some(ServerCertificate { certificate, key: key.serialize_pem() }),
            access: Some(access.into()),
            ..ClusterSettings::default()
        };
        let server = Server::start(&Programs::of_system().unwrap(), &settings);
        Safe { server, authority: file(&vouches.pem()) }
    }

    /// Opens the store at a host, with these parameters of the address.
    async fn open(&self, host: &str, parameters: &str) -> Result<PostgresStore, OpenError> {
        let settings = self.server.new_settings();
        let url = settings.url.replace("127.0.0.1", host);
        PostgresStore::open(PostgresSettings { url: format!("{url}&{parameters}"), ..settings }).await
    }

    fn root(&self) -> String {
        format!("sslrootcert={}", self.authority.path().display())
    }
}

#[tokio::test]
async fn a_certificate_by_the_named_authority_for_this_name_is_trusted() {
    let safe = Safe::start();
    let opened = safe.open("localhost", &format!("sslmode=verify-full&{}", safe.root())).await.unwrap();
    register(&opened).await;
    store(&opened, vec![message("safe")]).await.unwrap();
    let count = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name LIKE 'portway%'";
    assert_eq!(safe.server.sql(count), "1");
}

#[tokio::test]
async fn another_name_or_another_authority_is_refused() {
    let safe = Safe::start();
    let Err(error) = safe.open("127.0.0.1", &format!("sslmode=verify-full&{}", safe.root())).await else {
        panic!("the certificate is for another name")
    };
    assert!(matches!(error, OpenError::Tls { .. }), "{error:?}");
    assert!(error.hint().contains("sslmode"));
    let other = file(&authority("somebody else").pem());
    let root = format!("sslrootcert={}", other.path().display());
    for mode in ["verify-full", "verify-ca"] {
        let Err(error) = safe.open("localhost", &format!("sslmode={mode}&{root}")).await else {
            panic!("nobody vouches for it")
        };
        assert!(matches!(error, OpenError::Tls { .. }), "{error:?}");
    }
    // Who vouches is checked, the name is not.
    safe.open("127.0.0.1", &format!("sslmode=verify-ca&{}", safe.root())).await.unwrap();
}

#[tokio::test]
async fn weaker_modes_do_what_they_say() {
    let safe = Safe::start();
    safe.open("localhost", "sslmode=require").await.unwrap();
    safe.open("localhost", "sslmode=prefer").await.unwrap();
    let Err(error) = safe.open("localhost", "sslmode=disable").await else { panic!("it is not TLS") };
    assert!(matches!(error, OpenError::Login { .. }), "the server wants TLS: {error:?}");
    let plain = Server::of_system();
    let mut settings = plain.new_settings();
    settings.url.push_str("&sslmode=require");
    let Err(error) = PostgresStore::open(settings).await else { panic!("the server has no TLS") };
    assert!(matches!(error, OpenError::Tls { .. }), "{error:?}");
}
