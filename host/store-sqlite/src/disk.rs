//! What the file system under the store is, and how much room it has.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{statfs, statvfs};

/// File systems of other machines, by the number `statfs` gives: locks and flushes there do not
/// promise what SQLite needs.
const NETWORK: [(u32, &str); 11] = [
    (0x0000_6969, "NFS"),
    (0x0000_517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x7375_7245, "Coda"),
    (0x0000_564c, "NCP"),
];
const FUSE: u32 = 0x6573_5546;
/// FUSE file systems that keep their files on a disk of this machine.
const FUSE_LOCAL: [&str; 5] = ["fuseblk", "fuse.ntfs", "fuse.exfat", "fuse.ext4", "fuse.fuse-overlayfs"];

/// The name of the network file system a folder is on; none: it is on this machine.
pub(crate) fn network_file_system(folder: &Path) -> io::Result<Option<String>> {
    let number = statfs(folder)?.f_type;
    // The type is signed on some targets, and its upper half is not used.
    let number = number as u64 as u32;
    Ok(name_of_network(number, || fuse_type(folder)))
}

fn name_of_network(number: u32, fuse_type: impl FnOnce() -> Option<String>) -> Option<String> {
    if number == FUSE {
        let name = fuse_type().unwrap_or_else(|| "fuse".to_owned());
        return (!FUSE_LOCAL.contains(&name.as_str())).then_some(name);
    }
    NETWORK.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned())
}

/// The type of the mount that holds a folder, from the kernel's list of mounts.
fn fuse_type(folder: &Path) -> Option<String> {
    let folder = fs::canonicalize(folder).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let (before, after) = line.split_once(" - ")?;
        let Some(mount_point) = before.split(' ').nth(4) else { continue };
        let length = mount_point.len();
        let holds =
            folder.starts_with(mount_point) && best.as_ref().is_none_or(|(longest, _)| length >= *longest);
        if holds {
            best = Some((length, after.split(' ').next()?.to_owned()));
        }
    }
    best.map(|(_, kind)| kind)
}

/// Bytes an ordinary user may still write.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let stat = statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        let no_fuse = || None;
        assert_eq!(name_of_network(0x6969, no_fuse).as_deref(), Some("NFS"));
        assert_eq!(name_of_network(0xff53_4d42, no_fuse).as_deref(), Some("CIFS"));
        assert_eq!(name_of_network(0xef53, no_fuse), None, "ext4");
        assert_eq!(name_of_network(0x0102_1994, no_fuse), None, "tmpfs");
        assert_eq!(name_of_network(FUSE, || Some("fuse.sshfs".into())).as_deref(), Some("fuse.sshfs"));
        assert_eq!(name_of_network(FUSE, || Some("fuseblk".into())), None);
        assert_eq!(name_of_network(FUSE, no_fuse).as_deref(), Some("fuse"));
    }

    #[test]
    fn a_folder_of_this_machine_is_accepted_and_has_room() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(network_file_system(folder.path()).unwrap(), None);
        assert!(free_bytes(folder.path()).unwrap() > 0);
    }
}
