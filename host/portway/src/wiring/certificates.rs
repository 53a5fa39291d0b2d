//! What is wrong with the certificates a project names, of listeners and of grants: expired, soon to
//! expire, not the key's.

use std::path::Path;

use portway_config::{At, GrantSettings, Place, Problem, Project, ProjectPath, TlsSettings};
use portway_model::code;
use portway_net::certificate::{self, TlsError, Validity};
use portway_net::listen::TlsFiles;

/// A certificate that ends within so many days is worth a warning.
const SOON_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 86_400;

/// The problems and warnings of every certificate; `now` is in seconds since 1970. Files that
/// cannot be opened are judged with the project's other files.
pub fn certificate_problems(project: &Project, now: i64) -> Vec<Problem> {
    let mut problems = Vec::new();
    for interface in &project.interfaces {
        let source = interface.source.as_ref();
        if let Some(tls) = source.and_then(|source| source.tls.as_ref()) {
            listener(tls, now, &mut problems);
        }
        let uses = interface.destinations.iter().flat_map(|one| one.transform.iter().chain(&one.sender));
        let of_source = source.into_iter().flat_map(|source| source.grants.values());
        for grant in uses.flat_map(|one| one.grants.values()).chain(of_source) {
            of_grant(&grant.value, now, &mut problems);
        }
    }
    problems
}

fn of_grant(grant: &GrantSettings, now: i64, problems: &mut Vec<Problem>) {
    let (roots, tls) = match grant {
        GrantSettings::Http(http) => (http.tls_roots.as_ref(), None),
        GrantSettings::Tcp(tcp) => {
            let tls = tcp.tls.settings();
            (tls.and_then(|tls| tls.roots.as_ref()), tls)
        }
        GrantSettings::Folder(_)
        | GrantSettings::Reveal(_)
        | GrantSettings::Sign(_)
        | GrantSettings::State(_) => (None, None),
    };
    if let Some(roots) = roots {
        authorities(roots, code::GRANT_UNUSABLE, now, problems);
    }
    if let Some((certificate, key)) = tls.and_then(|tls| tls.certificate.as_ref().zip(tls.key.as_ref())) {
        shown_to_peer(certificate, key, now, problems);
    }
}

/// The certificate that the host shows to a peer.
fn shown_to_peer(
    certificate: &At<ProjectPath>,
    key: &At<ProjectPath>,
    now: i64,
    problems: &mut Vec<Problem>,
) {
    let (file, key) = (certificate.value.as_path(), key.value.as_path());
    if !(file.is_file() && key.is_file()) {
        return;
    }
    if let Err(error) = certificate::check_pair(file, key) {
        problems.push(unfit(&error, &certificate.place, code::GRANT_UNUSABLE));
    }
    for validity in certificate::validities(file).unwrap_or_default() {
        problems.extend(judge(&validity, &certificate.place, now));
    }
}

fn unfit(error: &TlsError, place: &Place, code: &'static str) -> Problem {
    let because = std::error::Error::source(error).map(|source| format!(": {source}"));
    let text = format!("{error}{}", because.unwrap_or_default());
    let problem = Problem::new(place.clone(), code, text);
    problem.hint("name a certificate with its chain and the key that belongs to it")
}

fn listener(tls: &TlsSettings, now: i64, problems: &mut Vec<Problem>) {
    let path = |file: &At<ProjectPath>| file.value.as_path().to_owned();
    let files = TlsFiles {
        certificate: path(&tls.certificate),
        key: path(&tls.key),
        clients: tls.clients.as_ref().map(path),
    };
    let readable = [Some(&files.certificate), Some(&files.key), files.clients.as_ref()];
    if readable.into_iter().flatten().any(|file| !file.is_file()) {
        return;
    }
    if let Err(error) = certificate::check_files(&files) {
        problems.push(unfit(&error, &tls.certificate.place, code::LISTENER_TLS));
    }
    let chain = certificate::validities(&files.certificate).unwrap_or_default();
    for validity in &chain {
        problems.extend(judge(validity, &tls.certificate.place, now));
    }
    if let Some(clients) = &tls.clients {
        authorities(clients, code::LISTENER_TLS, now, problems);
    }
}

/// A list of authorities has a problem when none of them holds.
fn authorities(file: &At<ProjectPath>, code: &'static str, now: i64, problems: &mut Vec<Problem>) {
    let path: &Path = file.value.as_path();
    if !path.is_file() {
        return;
    }
    let validities = match certificate::validities(path) {
        Ok(validities) => validities,
        Err(error) => {
            let text = error.to_string();
            problems.push(Problem::new(file.place.clone(), code, text));
            return;
        }
    };
    let judged: Vec<Problem> =
        validities.iter().filter_map(|validity| judge(validity, &file.place, now)).collect();
    let one_holds = judged.len() < validities.len();
    problems.extend(judged.into_iter().map(|problem| if one_holds { problem.as_warning() } else { problem }));
}

fn judge(validity: &Validity, place: &Place, now: i64) -> Option<Problem> {
    let who = if validity.subject.is_empty() { "without a subject" } else { validity.subject.as_str() };
    let who: String = who.chars().take(200).collect();
    if now < validity.not_before {
        let text = format!("certificate `{who}` does not hold yet");
        let problem = Problem::new(place.clone(), code::CERTIFICATE_NOT_VALID, text);
        return Some(
            problem.hint("wait until it does, or take one that does; look at the clock of this machine"),
        );
    }
    let left = validity.not_after.saturating_sub(now);
    if left < 0 {
        let text = format!("certificate `{who}` expired {} ago", days(-left));
        let problem = Problem::new(place.clone(), code::CERTIFICATE_NOT_VALID, text);
        return Some(problem.hint("renew it"));
    }
    if left < SOON_DAYS * DAY_SECONDS {
        let text = format!("certificate `{who}` expires in {}", days(left));
        let problem = Problem::new(place.clone(), code::CERTIFICATE_EXPIRES, text).as_warning();
        return Some(problem.hint("renew it; the new one is read without a restart"));
    }
    None
}

fn days(seconds: i64) -> String {
    match seconds / DAY_SECONDS {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(now: i64) -> Option<String> {
        let validity = Validity { subject: "CN=lab".into(), not_before: 0, not_after: 100 * DAY_SECONDS };
        judge(&validity, &Place::of_file("a.toml"), now).map(|problem| problem.text)
    }

    #[test]
    fn a_certificate_is_judged_by_the_days_it_has_left() {
        assert_eq!(say(10), None);
        assert_eq!(say(70 * DAY_SECONDS), None);
        assert_eq!(say(71 * DAY_SECONDS).unwrap(), "certificate `CN=lab` expires in 29 days");
        assert_eq!(say(100 * DAY_SECONDS).unwrap(), "certificate `CN=lab` expires in less than a day");
        assert_eq!(say(101 * DAY_SECONDS).unwrap(), "certificate `CN=lab` expired 1 day ago");
        assert_eq!(say(-1).unwrap(), "certificate `CN=lab` does not hold yet");
    }
}
