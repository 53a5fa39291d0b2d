//! Free ports in place of those that a guide names, so that guides run side by side.

use std::collections::BTreeMap;
use std::net::TcpListener;

/// What stands before a port in files and commands.
const BEFORE: [&str; 4] = ["127.0.0.1:", "0.0.0.0:", "localhost:", "port = "];

/// Which port stands for which, all over one guide.
#[derive(Default)]
pub struct Ports {
    free: BTreeMap<u16, u16>,
}

impl Ports {
    /// The free port for one that a guide names. One that is free already stays.
    pub fn of(&mut self, port: u16) -> u16 {
        if port == 0 || self.free.values().any(|free| *free == port) {
            return port;
        }
        *self.free.entry(port).or_insert_with(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        })
    }

    /// The text with free ports.
    pub fn replace(&mut self, text: &str) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some(at) = BEFORE.iter().filter_map(|before| Some(rest.find(before)? + before.len())).min()
        {
            let (before, behind) = rest.split_at(at);
            let digits = behind.len() - behind.trim_start_matches(|found: char| found.is_ascii_digit()).len();
            let (port, behind) = behind.split_at(digits);
            made.push_str(before);
            match port.parse() {
                Ok(port) => made.push_str(&self.of(port).to_string()),
                Err(_) => made.push_str(port),
            }
            rest = behind;
        }
        made + rest
    }
}

#[test]
fn a_port_gets_one_free_port_wherever_it_stands() {
    let mut ports = Ports::default();
    let text =
        ports.replace("a 127.0.0.1:2575, http://localhost:8080/x, port = 2575, 0.0.0.0:x, 127.0.0.1:0");
    let (mllp, http) = (ports.of(2575), ports.of(8080));
    assert_ne!((mllp, http), (2575, 8080));
    assert_eq!(
        text,
        format!("a 127.0.0.1:{mllp}, http://localhost:{http}/x, port = {mllp}, 0.0.0.0:x, 127.0.0.1:0")
    );
    assert_eq!(ports.replace(&text), text, "what is free already stays");
}
