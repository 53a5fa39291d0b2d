//! Every code under which an error reaches a person: stored reasons, counts, answers of the API, and
//! what commands print.
//!
//! A code is spelt once, here, and never changes its spelling: stores, dashboards and alerts of others
//! hold it. Each has a page in `docs/reference/errors/`, which `cargo xtask check` insists on and
//! `portway explain` shows. Plugins are built without this crate: those of theirs are in [`plugin`].

/// Constants with their codes, and the list of all of them.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $code;)*

        /// Every code of this file.
        pub const ALL: &[&str] = &[$($code),*];
    };
}

pub mod plugin;

/// Every code there is, those of first-party plugins included.
pub fn all() -> impl Iterator<Item = &'static str> {
    ALL.iter().chain(plugin::ALL).copied()
}

/// The code whose page explains a code that people met. A peer's own number is a code, too.
pub fn registered(code: &str) -> Option<&'static str> {
    let is_status = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let wanted = if is_status { plugin::HTTP_STATUS } else { code };
    all().find(|known| *known == wanted)
}

codes! {
    // Project files.

    /// A file is not TOML.
    NOT_TOML = "not-toml";
    /// A key that no option has.
    UNKNOWN_KEY = "unknown-key";
    /// An option without a default is not given.
    OPTION_MISSING = "option-missing";
    /// The value has another type than its option.
    WRONG_TYPE = "wrong-type";
    /// The value is smaller, larger, longer or more than its option takes.
    OUTSIDE_LIMITS = "outside-limits";
    /// The value has the right type, and not the form its option needs.
    BAD_VALUE = "bad-value";
    /// `${env:…}` or `${secret:…}` gives no value.
    BAD_REFERENCE = "bad-reference";
    /// A file or folder that the project needs cannot be read.
    FILE_UNREADABLE = "file-unreadable";
    /// `secrets.toml` can be read by others, or holds something that is no secret.
    BAD_SECRETS = "bad-secrets";
    /// A plugin asked for a secret that it was not granted.
    SECRET_DENIED = "secret-denied";
    /// Two destinations of an interface have one name.
    NAME_TWICE = "name-twice";
    /// A destination has neither a sender nor a route.
    NO_TARGET = "no-target";
    /// A destination has a sender and a route.
    TWO_TARGETS = "two-targets";
    /// Messages would come back to an interface they were in.
    ROUTE_LOOP = "route-loop";
    /// A route leads to an interface that is not there.
    UNKNOWN_ROUTE = "unknown-route";
    /// An interface has no source, and no route leads to it.
    INTERFACE_UNFED = "interface-unfed";
    /// Two listeners of one project want the same port.
    PORT_TWICE = "port-twice";
    /// Two HTTP sources on one listener want the same path.
    PATH_TWICE = "path-twice";
    /// Two HTTP sources share a port and want its listener different.
    LISTENERS_DIFFER = "listeners-differ";
    /// A source that waits for peers has no address.
    NO_LISTENER = "no-listener";
    /// A request whose path no interface takes.
    UNKNOWN_PATH = "unknown-path";
    /// A request whose path is taken with other methods.
    WRONG_METHOD = "wrong-method";
    /// A request that does not show who sends it, or not rightly.
    NOT_AUTHENTICATED = "not-authenticated";
    /// A request with a body that is compressed.
    ENCODED = "encoded";
    /// An option that this kind of source does nothing with.
    OPTION_UNUSED = "option-unused";
    /// A certificate has expired, or does not hold yet.
    CERTIFICATE_NOT_VALID = "certificate-not-valid";
    /// A certificate expires soon.
    CERTIFICATE_EXPIRES = "certificate-expires";
    /// The admin API would listen where others can reach it.
    NOT_LOOPBACK = "not-loopback";

    // Finding and loading plugins.

    /// No plugin has the name in this role.
    PLUGIN_UNKNOWN = "plugin-unknown";
    /// A plugin by path has the name of one that comes with Portway.
    PLUGIN_NAME_TAKEN = "plugin-name-taken";
    /// The binary was built without the plugins that come with Portway.
    PLUGINS_NOT_BUILT = "plugins-not-built";
    /// A plugin stands where another kind is needed.
    PLUGIN_WRONG_KIND = "plugin-wrong-kind";
    /// A component has more bytes than are taken.
    PLUGIN_TOO_LARGE = "plugin-too-large";
    /// The file is no WebAssembly component.
    PLUGIN_NO_COMPONENT = "plugin-no-component";
    /// The file is a core module, not a component.
    PLUGIN_CORE_MODULE = "plugin-core-module";
    /// A component without a manifest.
    PLUGIN_NO_MANIFEST = "plugin-no-manifest";
    /// A manifest that cannot be used.
    PLUGIN_BAD_MANIFEST = "plugin-bad-manifest";
    /// Built for a contract that this engine does not know.
    PLUGIN_CONTRACT = "plugin-contract";
    /// It exports no kind of plugin, one that is not called here, or several.
    PLUGIN_KIND_UNKNOWN = "plugin-kind-unknown";
    /// Manifest and exports name different kinds.
    PLUGIN_KIND_MISMATCH = "plugin-kind-mismatch";
    /// It imports what this engine does not offer.
    PLUGIN_UNKNOWN_IMPORT = "plugin-unknown-import";
    /// The component is not valid for the compiler.
    PLUGIN_DOES_NOT_COMPILE = "plugin-does-not-compile";
    /// The process that compiles could not be started.
    COMPILER_NOT_STARTED = "compiler-not-started";
    /// The process that compiles took too long, or ended without an answer.
    COMPILER_GAVE_UP = "compiler-gave-up";
    /// Its types are not those of the contract.
    PLUGIN_DOES_NOT_FIT = "plugin-does-not-fit";
    /// A slot that needs a grant has none.
    GRANT_MISSING = "grant-missing";
    /// A grant for which the plugin has no slot.
    GRANT_WITHOUT_SLOT = "grant-without-slot";
    /// A grant of another type than its slot takes.
    GRANT_WRONG_TYPE = "grant-wrong-type";
    /// What a grant names cannot be used.
    GRANT_UNUSABLE = "grant-unusable";

    // Opening the store and starting the engine.

    /// The data folder cannot be made.
    NO_DATA_FOLDER = "no-data-folder";
    /// Another engine has the store.
    STORE_IN_USE = "store-in-use";
    /// The store is on a network file system.
    STORE_ON_NETWORK = "store-on-network";
    /// The file belongs to another program.
    STORE_FOREIGN = "store-foreign";
    /// The store was made by a newer program.
    STORE_NEWER = "store-newer";
    /// The file is damaged.
    STORE_DAMAGED = "store-damaged";
    /// Something else than a file is at the store's path.
    STORE_NOT_A_FILE = "store-not-a-file";
    /// The file cannot be opened.
    STORE_NOT_OPENED = "store-not-opened";
    /// A store that was open failed.
    STORE_FAILED = "store-failed";
    /// Other engines on the same store deliver what this one would.
    OWNED = "owned";
    /// The store answered what it must not.
    STORE_BROKE_CONTRACT = "store-broke-contract";
    /// The engine stopped before all results were stored.
    RESULTS_NOT_STORED = "results-not-stored";
    /// What runs plugins cannot be started.
    RUNTIME_FAILED = "runtime-failed";
    /// The folder for native code cannot be made.
    NO_CODE_FOLDER = "no-code-folder";
    /// A port cannot be listened on.
    CANNOT_LISTEN = "cannot-listen";
    /// A listener's certificate or key cannot be used.
    LISTENER_TLS = "listener-tls";
    /// `portway gen` or `sink` cannot write its ledger.
    LEDGER_NOT_WRITTEN = "ledger-not-written";
    /// `portway gen` was given fewer keys than connections.
    TOO_FEW_KEYS = "too-few-keys";
    /// The file with the control token cannot be written.
    TOKEN_NOT_WRITTEN = "token-not-written";
    /// The system gives no threads.
    NO_THREADS = "no-threads";
    /// The program's own file cannot be found.
    NO_PROGRAM = "no-program";
    /// The engine ended without being told to.
    ENGINE_GONE = "engine-gone";
    /// The engine's task broke off; a defect of Portway.
    ENGINE_PANIC = "engine-panic";

    // Commands that talk to a running engine.

    /// No engine has run with this data folder.
    NEVER_RAN = "never-ran";
    /// Nothing answers where the engine listened.
    NOT_RUNNING = "not-running";
    /// The file with the control token cannot be read.
    TOKEN_UNREADABLE = "token-unreadable";
    /// The engine took too long.
    NO_ANSWER_IN_TIME = "no-answer-in-time";
    /// The connection to the engine broke.
    CONNECTION_BROKEN = "connection-broken";
    /// The answer is not what this program expects.
    ANSWER_UNREADABLE = "answer-unreadable";
    /// `portway.toml` cannot be read.
    NO_PROJECT = "no-project";

    // Answers of the API.

    /// The store cannot be read now.
    STORE = "store";
    /// The engine did not answer its own API.
    ENGINE = "engine";
    /// No message has this number.
    NO_MESSAGE = "no-message";
    /// The message's body was removed.
    NO_BODY = "no-body";
    /// Nothing that was given to a sender was kept.
    NO_OUTPUT = "no-output";
    /// No retention of the interface waits for a confirmation.
    NOTHING_TO_CONFIRM = "nothing-to-confirm";
    /// No interface has this name.
    NO_INTERFACE = "no-interface";
    /// The interface has no destination of this name.
    NO_DESTINATION = "no-destination";
    /// A plugin keeps no such value.
    NO_STATE = "no-state";
    /// No delivery of the message is in a state that fits.
    NOTHING_FITS = "nothing-fits";
    /// An action was not recorded.
    NOT_DONE = "not-done";
    /// The copy of the store was not made.
    BACKUP = "backup";
    /// The Host header is not this engine's.
    HOST_NOT_ALLOWED = "host-not-allowed";
    /// The request comes from another site's page.
    ORIGIN_NOT_ALLOWED = "origin-not-allowed";
    /// The control token is missing or wrong.
    TOKEN_WRONG = "token-wrong";
    /// The request took too long.
    TIMED_OUT = "timed-out";
    /// Nothing is at the path.
    NO_ROUTE = "no-route";
    /// The path does not take the method.
    METHOD_NOT_ALLOWED = "method-not-allowed";

    // Fates of messages, and why intake is closed.

    /// Too much waits, the store is away, or everything of a kind is in use.
    BUSY = "busy";
    /// The store has no room.
    FULL = "full";
    /// The message is larger than it may be.
    TOO_LARGE = "too-large";
    /// The engine stops.
    STOPPED = "stopped";
    /// The engine drains: it delivers what it has and takes nothing new.
    DRAINING = "draining";
    /// Nobody knows whether it arrived, and its destination may not send it twice.
    MAY_HAVE_ARRIVED = "may-have-arrived";
    /// An interface does not make searchable what is searched for.
    NOT_SEARCHABLE = "not-searchable";
    /// Several lanes are blocked, and none was named.
    LANE_UNCLEAR = "lane-unclear";
    /// Somebody paused the destination.
    PAUSED = "paused";
    /// The store refuses this message, or a request was asked wrongly.
    INVALID = "invalid";

    // Connections that were refused or ended.

    /// The address is not on the list.
    NOT_ALLOWED = "not-allowed";
    /// As many connections are open as may be.
    TOO_MANY = "too-many";
    /// The TLS handshake failed.
    TLS_FAILED = "tls-failed";
    /// The TLS handshake took too long.
    TLS_TIMEOUT = "tls-timeout";
    /// The system gave no connection.
    ACCEPT_FAILED = "accept-failed";
    /// The peer closed.
    PEER_CLOSED = "peer-closed";
    /// Reading failed.
    BROKEN = "broken";
    /// Nothing came for too long.
    IDLE = "idle";
    /// A frame took too long.
    FRAME_TIMEOUT = "frame-timeout";
    /// The plugin's answer closed the connection.
    ANSWERED = "answered";
    /// The peer did not take its answer.
    WRITE_TIMEOUT = "write-timeout";
    /// The answer could not be written.
    WRITE_FAILED = "write-failed";
    /// The source cannot go on with this peer.
    REFUSED = "refused";
    /// The source plugin failed.
    FAULT = "fault";
    /// No instance of the source plugin was free.
    UNAVAILABLE = "unavailable";
    /// Too many connections of a slowed address wait.
    SLOWED = "slowed";
    /// The engine stops.
    STOPPING = "stopping";
    /// It was not done when the time to stop was over.
    STOP_TIMEOUT = "stop-timeout";
    /// Codes beyond the limit, counted together.
    OTHER = "other";
    /// A plugin logged more than it may.
    LOG_DROPPED = "log-dropped";

    // Why a message is quarantined, or a destination waits or stops.

    /// The last attempt that the policy allows failed.
    ATTEMPTS_USED_UP = "attempts-used-up";
    /// The process ended several times while it was delivered.
    SUSPECT = "suspect";
    /// The message's body is not in the store.
    MESSAGE_GONE = "message-gone";
    /// The store refuses what became of a delivery.
    RESULT_REFUSED = "result-refused";
    /// A transform gave several outputs before a sender.
    SEVERAL_OUTPUTS = "several-outputs";
    /// A transform's attributes do not fit the message's.
    ATTRIBUTES = "attributes";
    /// A plugin used up its limits several times in a row.
    RUNAWAY = "runaway";
    /// A report on a run breaks the rules, or nothing was tried.
    BAD_REPORT = "bad-report";
    /// A delivery that was recorded as about to be tried was not.
    NOT_TRIED = "not-tried";
    /// The project has no such destination.
    UNKNOWN_DESTINATION = "unknown-destination";
    /// Delivering broke off inside the engine's process; a defect of Portway.
    PANIC = "panic";
    /// The plugin trapped.
    PLUGIN_TRAP = "plugin-trap";
    /// The plugin used up its fuel.
    PLUGIN_OUT_OF_FUEL = "plugin-out-of-fuel";
    /// The plugin used up its memory.
    PLUGIN_OUT_OF_MEMORY = "plugin-out-of-memory";
    /// The plugin computed until its time was up.
    PLUGIN_TIMED_OUT = "plugin-timed-out";
    /// The plugin waited in a service until its time was up.
    PLUGIN_TIMED_OUT_IN_SERVICE = "plugin-timed-out-in-service";
    /// The plugin handed over more than a call may copy.
    PLUGIN_COPY_LIMIT = "plugin-copy-limit";
    /// The plugin's answer breaks the contract.
    PLUGIN_LIE = "plugin-lie";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Failure;

    #[test]
    fn a_code_is_written_once_and_like_the_others() {
        let mut seen = BTreeSet::new();
        for code in all() {
            assert!(seen.insert(code), "`{code}` is there twice");
            assert!(code.len() <= Failure::CODE_BYTES_MAX, "`{code}` is too long");
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            assert!(!code.is_empty() && code.bytes().all(word), "`{code}` is no code");
        }
    }

    #[test]
    fn a_status_of_a_web_service_has_one_page_for_all() {
        assert_eq!(registered("503"), Some(plugin::HTTP_STATUS));
        assert_eq!(registered("store-in-use"), Some(STORE_IN_USE));
        assert_eq!(registered("5030"), None);
        assert_eq!(registered("no-such-code"), None);
    }
}
