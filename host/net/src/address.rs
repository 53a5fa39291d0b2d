//! Which addresses an outbound connection may go to.
//!
//! Checked after the name was resolved, on the very address that is dialled, so that a name
//! which answers differently the second time gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// The addresses a grant reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressPolicy {
    /// For targets an operator wrote: private networks too, but never link-local addresses,
    /// where clouds keep the machine's credentials, nor multicast, broadcast or unspecified ones.
    #[default]
    Operator,
    /// For targets a stranger wrote: public unicast addresses alone.
    Public,
    /// Everything; metadata services must be granted so.
    Any,
}

/// Why an address was not dialled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("address `{address}` is {kind}, which this grant does not reach")]
pub struct AddressRefused {
    pub address: IpAddr,
    pub kind: &'static str,
}

impl AddressPolicy {
    /// Fails with the reason if the policy forbids the address.
    pub fn check(self, address: IpAddr) -> Result<(), AddressRefused> {
        let kind = match self {
            AddressPolicy::Any => None,
            AddressPolicy::Operator => never_a_peer(address),
            AddressPolicy::Public => never_a_peer(address).or_else(|| not_public(address)),
        };
        kind.map_or(Ok(()), |kind| Err(AddressRefused { address, kind }))
    }
}

/// Metadata services that lie outside the link-local ranges.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

fn never_a_peer(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => never_a_peer_v4(v4),
        IpAddr::V6(v6) if v6.is_loopback() => None,
        IpAddr::V6(v6) => never_a_peer_v6(v6).or_else(|| embedded_v4(v6).and_then(never_a_peer_v4)),
    }
}

fn never_a_peer_v4(address: Ipv4Addr) -> Option<&'static str> {
    if METADATA_V4.contains(&address) {
        return Some("a metadata service");
    }
    if address.is_link_local() {
        return Some("link-local");
    }
    if address.is_broadcast() {
        return Some("the broadcast address");
    }
    if address.is_multicast() {
        return Some("multicast");
    }
    // All of 0.0.0.0/8 means "this host" to some system or other.
    (address.octets()[0] == 0).then_some("unspecified")
}

fn never_a_peer_v6(address: Ipv6Addr) -> Option<&'static str> {
    if METADATA_V6.contains(&address) {
        return Some("a metadata service");
    }
    if address.is_unicast_link_local() {
        return Some("link-local");
    }
    if address.is_multicast() {
        return Some("multicast");
    }
    address.is_unspecified().then_some("unspecified")
}

fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => not_public_v4(v4),
        IpAddr::V6(v6) => not_public_v6(v6),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    if address.is_loopback() {
        return Some("loopback");
    }
    if address.is_private() {
        return Some("private");
    }
    if address.is_documentation() {
        return Some("for documentation");
    }
    match address.octets() {
        [100, 64..=127, ..] => Some("shared by carriers"),
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => Some("reserved"),
        _ => None,
    }
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_loopback() {
        return Some("loopback");
    }
    if let Some(v4) = embedded_v4(address) {
        // Only a mapped address is dialled as what it holds; the others are tunnels.
        return if address.to_ipv4_mapped().is_some() { not_public_v4(v4) } else { Some("a tunnel") };
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("for documentation"),
        // Protocol assignments, ORCHID and benchmarking.
        [0x2001, 0..=0x1ff, ..] => Some("reserved"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

/// The IPv4 address that a mapped, compatible, NAT64, 6to4 or Teredo address leads to.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 1, _, _, _, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(v4(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(address: &str) -> (bool, bool) {
        let address: IpAddr = address.parse().unwrap();
        assert!(AddressPolicy::Any.check(address).is_ok());
        (AddressPolicy::Operator.check(address).is_ok(), AddressPolicy::Public.check(address).is_ok())
    }

    #[test]
    fn public_addresses_are_reached_by_every_policy() {
        for address in ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert_eq!(verdicts(address), (true, true), "{address}");
        }
    }

    #[test]
    fn private_addresses_are_for_operators() {
        let cases = [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "fd12::1",
            "192.0.2.1",
            "198.18.0.1",
            "240.0.0.1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
        ];
        for address in cases {
            assert_eq!(verdicts(address), (true, false), "{address}");
        }
    }

    #[test]
    fn metadata_and_addresses_that_are_no_peer_are_never_reached() {
        let cases = [
            "169.254.169.254",
            "169.254.1.1",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
            "::",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "::169.254.169.254",
            "2001:0:1:2:3:4:5601:5601",
        ];
        for address in cases {
            assert_eq!(verdicts(address), (false, false), "{address}");
        }
    }
}
