//! Codes that the plugins of this repository and the SDK for Rust write themselves.
//!
//! A code that the host uses, too, stands in [`super`]. Plugins of others have codes of their own.

codes! {
    // The SDK.

    /// An error that the plugin gave no code.
    ERROR = "error";
    /// The plugin refuses its settings.
    BAD_SETTINGS = "bad-settings";
    /// The body is not UTF-8.
    NOT_UTF_8 = "not-utf-8";

    // Several plugins.

    /// The message is no HL7 v2.
    NOT_HL7 = "not-hl7";
    /// Several messages, or a batch, where one message belongs.
    BATCH = "batch";
    /// A body that is kept outside the plugin could not be read.
    BODY = "body";
    /// The same, in a transform.
    BLOBS = "blobs";
    /// What the plugin wants to reach is not granted.
    DENIED = "denied";
    /// The peer cannot be reached.
    UNREACHABLE = "unreachable";
    /// The peer took too long.
    TIMEOUT = "timeout";
    /// TLS towards the peer failed for a reason that only a person can change.
    UNTRUSTED = "untrusted";

    // Several sources.

    /// A source's progress that this version of it cannot read.
    UNKNOWN_CURSOR = "unknown-cursor";
    /// Bytes that are no well-formed JSON.
    INVALID_JSON = "invalid-json";
    /// JSON that is no array.
    NOT_AN_ARRAY = "not-an-array";
    /// Input in UTF-16 or UTF-32.
    WRONG_CHARSET = "wrong-charset";

    // The MLLP and TCP sources: refusals and doubts.

    /// A frame without content.
    EMPTY_FRAME = "empty-frame";
    /// The message is in UTF-16 or UTF-32.
    UTF_16 = "utf-16";
    /// MSH declares no usable separator.
    BAD_HEADER = "bad-header";
    /// MSH is longer than can be acknowledged.
    HEADER_TOO_LONG = "header-too-long";
    /// A start byte inside a frame.
    SECOND_START_BYTE = "second-start-byte";
    /// An end byte inside a message.
    END_BYTE_INSIDE = "end-byte-inside";
    /// Bytes behind an end byte.
    AFTER_END_BYTE = "after-end-byte";
    /// Bytes without a start byte before them.
    NO_START_BYTE = "no-start-byte";
    /// A frame ends in FS without CR.
    END_WITHOUT_CR = "end-without-cr";
    /// The connection closed inside a frame.
    CLOSED_IN_FRAME = "closed-in-frame";
    /// Nothing more came inside a frame.
    IDLE_IN_FRAME = "idle-in-frame";
    /// The engine stopped inside a frame.
    STOPPED_IN_FRAME = "stopped-in-frame";
    /// An acknowledgement where messages are expected.
    UNEXPECTED_ACK = "unexpected-ack";
    /// A TLS handshake on a port without TLS.
    TLS = "tls";
    /// HTTP on a port for HL7.
    HTTP = "http";
    /// Too many frames in a row could not be accepted.
    TOO_MANY_REFUSALS = "too-many-refusals";
    /// Not stored, for a reason the plugin does not know.
    NOT_STORED = "not-stored";
    /// A ticket that this plugin did not write.
    BAD_TICKET = "bad-ticket";
    /// A length before a frame that is none.
    BAD_LENGTH = "bad-length";
    /// A message of which nothing says where it ends.
    END_UNKNOWN = "end-unknown";

    // The MLLP and TCP sources: notices.

    /// Zeros, blanks or line ends between frames.
    BYTES_BETWEEN_FRAMES = "bytes-between-frames";
    /// Other bytes outside a frame.
    BYTES_BEFORE_START = "bytes-before-start";
    /// A byte order mark before a start byte.
    MARK_BEFORE_FRAME = "mark-before-frame";
    /// A byte order mark before a header.
    MARK_INSIDE_FRAME = "mark-inside-frame";
    /// A key path that points behind what is looked at.
    KEY_OUT_OF_REACH = "key-out-of-reach";
    /// A frame ends in FS LF.
    END_IN_LF = "end-in-lf";
    /// A start byte behind a start byte.
    START_BYTE_REPEATED = "start-byte-repeated";

    // The file source.

    /// The inbox cannot be looked at or read now.
    INBOX_UNAVAILABLE = "inbox-unavailable";
    /// As many files that were done with lie in the inbox as can be remembered.
    INBOX_NOT_EMPTIED = "inbox-not-emptied";
    /// More names in the inbox than are looked at.
    INBOX_TOO_FULL = "inbox-too-full";
    /// A name that cannot be reached.
    ODD_NAME = "odd-name";
    /// A file without a record.
    EMPTY_FILE = "empty-file";
    /// A file that cannot be opened or read.
    UNREADABLE = "unreadable";
    /// A record that is longer than allowed.
    RECORD_TOO_LARGE = "record-too-large";
    /// A quote in CSV that is never closed.
    QUOTE_NOT_CLOSED = "quote-not-closed";
    /// A header or trailer of an HL7 batch where it cannot be.
    BATCH_ORDER = "batch-order";
    /// A trailer that counts otherwise.
    COUNT_DIFFERS = "count-differs";
    /// An HL7 batch without its end.
    TRAILER_MISSING = "trailer-missing";
    /// A file that grew while it was read.
    FILE_GREW = "file-grew";
    /// A file that is not what was read before.
    FILE_CHANGED = "file-changed";
    /// A file that has another name than when it was begun.
    FILE_RENAMED = "file-renamed";
    /// A file that is gone before it was read to its end.
    FILE_VANISHED = "file-vanished";
    /// A file that changes all the time, as do too many others.
    CHANGES_WHILE_READ = "changes-while-read";
    /// A file that changed before it was moved.
    CHANGED_AFTER_READING = "changed-after-reading";
    /// A file that was read and cannot be moved or deleted.
    NOT_MOVED = "not-moved";
    /// A record that the store refused.
    RECORD_NOT_STORED = "record-not-stored";

    // The HTTP source.

    /// A request without a body.
    EMPTY_BODY = "empty-body";
    /// A request without an element.
    NO_ELEMENTS = "no-elements";
    /// A request with more elements than allowed.
    TOO_MANY_ELEMENTS = "too-many-elements";
    /// A content type that is not taken.
    CONTENT_TYPE = "content-type";
    /// A message without an order key.
    NO_KEY = "no-key";

    // The schedule source.

    /// A run that was skipped while a message is not finished.
    RUN_SKIPPED = "run-skipped";
    /// A clock that is far behind the last run.
    CLOCK_SET_BACK = "clock-set-back";

    // The transforms of HL7.

    /// A message of another type than ORU.
    NOT_ORU = "not-oru";
    /// A delimiter that is not ASCII.
    BAD_DELIMITERS = "bad-delimiters";
    /// Bytes that do not fit the message's character set.
    MALFORMED_TEXT = "malformed-text";
    /// A character set that the host cannot decode.
    CHARSET = "charset";
    /// A character set that no table names.
    UNKNOWN_CHARSET = "unknown-charset";
    /// A segment without a name.
    BAD_SEGMENT = "bad-segment";

    // The transforms of CSV and JSON.

    /// The message is no CSV, or breaks off.
    NOT_CSV = "not-csv";
    /// Columns without names, or with the same.
    BAD_COLUMNS = "bad-columns";
    /// A record with another number of fields than there are columns.
    RAGGED = "ragged";
    /// No record, or several, where one belongs.
    NOT_ONE_RECORD = "not-one-record";
    /// The message is no JSON.
    NOT_JSON = "not-json";
    /// No object where a record belongs.
    NOT_A_RECORD = "not-a-record";
    /// The message lacks a value that is required.
    MISSING_VALUE = "missing-value";
    /// An object or array where a single value belongs.
    NESTED_VALUE = "nested-value";
    /// A value that a step cannot convert.
    CANNOT_CONVERT = "cannot-convert";
    /// Something stands where a member is to be put.
    NO_PLACE = "no-place";

    // The transforms `filter` and `route`.

    /// A body that is not what the settings say.
    BODY_UNREADABLE = "body-unreadable";
    /// No rule of the table holds, and nothing is said of the rest.
    NO_RULE = "no-rule";

    // The transform `look-up`.

    /// The API that is asked has nothing for the message.
    NOT_FOUND = "not-found";
    /// The API answered with what cannot be used.
    BAD_ANSWER = "bad-answer";

    // The HTTP sender.

    /// Stands for every status of a web service: the code itself is the number.
    HTTP_STATUS = "http-status";
    /// The connection gave no answer.
    NO_ANSWER = "no-answer";
    /// The message gives no request that HTTP knows.
    INVALID_REQUEST = "invalid-request";
    /// The answer is larger than the grant allows.
    ANSWER_TOO_LARGE = "answer-too-large";
    /// The message does not have what the path needs.
    NO_PATH = "no-path";

    // The MLLP and TCP senders.

    /// The receiver cannot take it now.
    AE = "AE";
    /// The receiver rejects it.
    AR = "AR";
    /// The receiver cannot take it now, in enhanced mode.
    CE = "CE";
    /// The receiver rejects it, in enhanced mode.
    CR = "CR";
    /// The message holds what begins or ends a frame.
    FRAME_BYTE = "frame-byte";
    /// What came back is no acknowledgement.
    BAD_ACK = "bad-ack";
    /// The acknowledgement is of another message.
    FOREIGN_ACK = "foreign-ack";
    /// No acknowledgement came in time.
    ACK_TIMEOUT = "ack-timeout";
    /// The peer closed before it acknowledged.
    CLOSED = "closed";
    /// The connection was lost before the acknowledgement.
    CONNECTION_LOST = "connection-lost";
    /// More came than the acknowledgement.
    BYTES_AFTER_ACK = "bytes-after-ack";
    /// Something came before the acknowledgement.
    JUNK_BEFORE_ACK = "junk-before-ack";
    /// The answer is no success.
    REJECTED = "rejected";
    /// The answer says that it may be taken later.
    NOT_NOW = "not-now";

    // The SMTP sender.

    /// The server refuses the message.
    SMTP_REFUSED = "smtp-refused";
    /// The server cannot take the message now.
    SMTP_NOT_NOW = "smtp-not-now";
    /// What came is no reply, or not to what was said.
    BAD_REPLY = "bad-reply";
    /// The server refuses recipients.
    RECIPIENTS_REFUSED = "recipients-refused";
    /// The server offers no STARTTLS.
    NO_STARTTLS = "no-starttls";
    /// The server offers no way to log in.
    NO_LOGIN = "no-login";
    /// The server refuses the login.
    LOGIN_REFUSED = "login-refused";
    /// A value would bring a control character into a header.
    CONTROL_CHARACTER = "control-character";
    /// A value is no address of a mailbox.
    BAD_ADDRESS = "bad-address";

    // The file sender.

    /// No room in the folder.
    DISK_FULL = "disk-full";
    /// The folder or its disk is away.
    FOLDER_UNAVAILABLE = "folder-unavailable";
    /// The folder is not there.
    NO_FOLDER = "no-folder";
    /// The folder cannot do what is asked.
    UNSUPPORTED = "unsupported";
    /// Another file has the name.
    NAME_TAKEN = "name-taken";
    /// The path is no regular file.
    NOT_A_FILE = "not-a-file";
    /// The message does not have what the name needs.
    NO_NAME = "no-name";
    /// The message holds the separator of records.
    SEPARATOR_IN_MESSAGE = "separator-in-message";
    /// The message was not tried.
    UNTRIED = "untried";
}
