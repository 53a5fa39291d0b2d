//! A granted folder is a wall.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use portway_net::folder::{Access, Folder, FolderError, FolderGrant, OnExists};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// A folder `inside`, beside something that must not be reached.
struct House {
    root: TempDir,
    folder: Folder,
}

fn house() -> House {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("inside/sub")).unwrap();
    fs::create_dir(root.path().join("outside")).unwrap();
    fs::write(root.path().join("outside/secret"), "secret").unwrap();
    let folder = folder(&root, Access::Write);
    House { root, folder }
}

fn folder(root: &TempDir, access: Access) -> Folder {
    Folder::new(FolderGrant { path: root.path().join("inside"), access })
}

impl House {
    fn inside(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join("inside").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.inside(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.inside("")).unwrap().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        names.iter().map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// Every way to touch a path gives this error.
    fn check_every_way(&self, path: &str, expected: &FolderError) {
        let folder = &self.folder;
        let ways: [(&str, Result<(), FolderError>); 8] = [
            ("stat", folder.stat(path).map(drop)),
            ("open", folder.open(path).map(drop)),
            ("put", folder.put(path, b"x", OnExists::Replace)),
            ("append", folder.append(path, b"x")),
            ("sync", folder.sync(path)),
            ("remove", folder.remove(path)),
            ("move from", folder.move_to(path, folder, "moved", OnExists::Replace)),
            ("move to", {
                folder.put("mine", b"mine", OnExists::Replace).unwrap();
                folder.move_to("mine", folder, path, OnExists::Replace)
            }),
        ];
        for (way, result) in ways {
            assert_eq!(result.as_ref(), Err(expected), "{way} {path:?}");
        }
    }
}

#[test]
fn paths_that_lead_out_are_denied_in_every_way() {
    let house = house();
    let absolute = house.root.path().join("outside/secret");
    for path in [
        "../outside/secret",
        "sub/../../outside/secret",
        absolute.to_str().unwrap(),
        "",
        ".",
        "sub//x",
        "a\0",
    ] {
        house.check_every_way(path, &FolderError::Denied);
    }
    assert_eq!(fs::read_to_string(absolute).unwrap(), "secret");
}

#[test]
fn a_link_at_the_end_is_no_file_wherever_it_leads() {
    let house = house();
    fs::write(house.inside("real"), "real").unwrap();
    symlink(house.root.path().join("outside/secret"), house.inside("out")).unwrap();
    symlink("real", house.inside("in")).unwrap();
    symlink("nowhere", house.inside("dangling")).unwrap();
    symlink("loop", house.inside("loop")).unwrap();
    for name in ["out", "in", "dangling", "loop"] {
        house.check_every_way(name, &FolderError::NotAFile);
    }
    assert_eq!(fs::read_to_string(house.root.path().join("outside/secret")).unwrap(), "secret");
    assert_eq!(house.read("real"), "real");
    assert!(!house.inside("nowhere").exists());
}

#[test]
fn a_link_on_the_way_is_denied_wherever_it_leads() {
    let house = house();
    symlink(house.root.path().join("outside"), house.inside("way-out")).unwrap();
    symlink("sub", house.inside("way-in")).unwrap();
    fs::write(house.inside("sub/file"), "file").unwrap();
    for path in ["way-out/secret", "way-in/file", "way-out/new"] {
        let result = house.folder.open(path).map(drop);
        assert!(matches!(result, Err(FolderError::Denied | FolderError::NotFound)), "{path}: {result:?}");
        let result = house.folder.put(path, b"x", OnExists::Replace);
        assert!(matches!(result, Err(FolderError::Denied | FolderError::NotFound)), "{path}: {result:?}");
    }
    assert!(house.folder.scan("way-out", None, 10).is_err());
    assert!(!house.root.path().join("outside/new").exists());
    assert_eq!(house.read("sub/file"), "file");
}

#[test]
fn pipes_sockets_and_devices_are_refused_without_waiting() {
    let house = house();
    mknodat(CWD, house.inside("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(house.inside("socket")).unwrap();
    let mut names = vec!["pipe", "socket"];
    // Only the administrator can make a device.
    if mknodat(CWD, house.inside("device"), FileType::CharacterDevice, Mode::RWXU, rustix::fs::makedev(1, 5))
        .is_ok()
    {
        names.push("device");
    }
    for name in &names {
        house.check_every_way(name, &FolderError::NotAFile);
    }
    house.check_every_way("pipe/x", &FolderError::NotFound);
    let shown: Vec<_> =
        house.folder.scan("", None, 10).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(shown, ["mine", "sub"]);
}

#[test]
fn a_folder_is_no_file() {
    let house = house();
    assert!(house.folder.stat("sub").unwrap().is_folder);
    assert_eq!(house.folder.open("sub").unwrap_err(), FolderError::NotAFile);
    assert_eq!(house.folder.append("sub", b"x").unwrap_err(), FolderError::NotAFile);
    assert_eq!(house.folder.put("sub", b"x", OnExists::Replace).unwrap_err(), FolderError::NotAFile);
    assert_eq!(house.folder.put("sub", b"x", OnExists::Fail).unwrap_err(), FolderError::Exists);
    assert_eq!(house.folder.remove("sub").unwrap_err(), FolderError::NotAFile);
    assert_eq!(house.folder.open("missing/file").unwrap_err(), FolderError::NotFound);
}

#[test]
fn a_put_is_whole_or_not_at_all() {
    let house = house();
    house.folder.put("sub/a.txt", b"one", OnExists::Fail).unwrap();
    assert_eq!(house.folder.put("sub/a.txt", b"two", OnExists::Fail).unwrap_err(), FolderError::Exists);
    assert_eq!(house.read("sub/a.txt"), "one");
    house.folder.put("sub/a.txt", b"three", OnExists::Replace).unwrap();
    assert_eq!(house.read("sub/a.txt"), "three");

    struct FullAfterSome(bool);
    impl Read for FullAfterSome {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            buffer[..4].copy_from_slice(b"half");
            Ok(4)
        }
    }
    let full = house.folder.put_from("b", &mut FullAfterSome(false), OnExists::Replace);
    assert_eq!(full, Err(FolderError::Full));
    assert_eq!(house.names(), ["sub"]);
}

#[test]
fn what_a_killed_process_left_is_not_shown_and_cannot_be_named() {
    let house = house();
    fs::write(house.inside(".portway-part-1"), "half").unwrap();
    assert_eq!(house.folder.scan("", None, 10).unwrap().len(), 1);
    assert_eq!(house.folder.open(".portway-part-1").unwrap_err(), FolderError::Denied);
    let old = fs::File::options().write(true).open(house.inside(".portway-part-1")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    // Looked for now and then.
    for _ in 0..1025 {
        house.folder.put("a", b"", OnExists::Replace).unwrap();
    }
    assert_eq!(house.names(), ["a", "sub"]);
}

#[test]
fn appends_of_two_folders_stay_whole() {
    let house = house();
    let other = folder(&house.root, Access::Write);
    let lines = 500;
    std::thread::scope(|scope| {
        for (mark, folder) in [("a", house.folder.clone()), ("b", house.folder.clone()), ("c", other)] {
            scope.spawn(move || {
                for _ in 0..lines {
                    folder.append("log", format!("{}\n", mark.repeat(100)).as_bytes()).unwrap();
                }
                folder.sync("log").unwrap();
            });
        }
    });
    let text = house.read("log");
    for mark in ["a", "b", "c"] {
        assert_eq!(text.lines().filter(|line| *line == mark.repeat(100)).count(), lines, "{mark}");
    }
}

#[test]
fn an_append_goes_to_the_file_that_has_the_name_now() {
    let house = house();
    house.folder.append("log", b"one\n").unwrap();
    fs::rename(house.inside("log"), house.inside("log.1")).unwrap();
    house.folder.append("log", b"two\n").unwrap();
    house.folder.sync("log").unwrap();
    assert_eq!((house.read("log.1").as_str(), house.read("log").as_str()), ("one\n", "two\n"));
    assert_eq!(house.folder.sync("other"), Err(FolderError::NotFound));
}

#[test]
fn a_folder_that_was_replaced_is_opened_anew_and_one_that_is_away_is_said_so() {
    let house = house();
    house.folder.append("log", b"one\n").unwrap();
    fs::rename(house.inside(""), house.root.path().join("aside")).unwrap();
    assert!(matches!(house.folder.append("log", b"two\n"), Err(FolderError::Unavailable(_))));
    fs::create_dir(house.inside("")).unwrap();
    house.folder.append("log", b"three\n").unwrap();
    assert_eq!(house.read("log"), "three\n");
}

#[test]
fn a_file_locked_by_another_process_is_not_appended_to() {
    let house = house();
    let other = fs::File::create(house.inside("log")).unwrap();
    other.lock().unwrap();
    assert!(matches!(house.folder.append("log", b"one\n"), Err(FolderError::Unavailable(_))));
    drop(other);
    house.folder.append("log", b"one\n").unwrap();
}

#[test]
fn a_move_takes_the_file_along() {
    let house = house();
    let second_root = tempfile::tempdir().unwrap();
    fs::create_dir(second_root.path().join("inside")).unwrap();
    let second = folder(&second_root, Access::Write);
    house.folder.put("a", b"one", OnExists::Fail).unwrap();
    house.folder.put("taken", b"two", OnExists::Fail).unwrap();
    assert_eq!(house.folder.move_to("a", &house.folder, "taken", OnExists::Fail), Err(FolderError::Exists));
    house.folder.move_to("a", &house.folder, "sub/b", OnExists::Fail).unwrap();
    house.folder.move_to("sub/b", &second, "c", OnExists::Fail).unwrap();
    assert_eq!(fs::read_to_string(second_root.path().join("inside/c")).unwrap(), "one");
    assert_eq!(house.folder.move_to("a", &second, "d", OnExists::Fail), Err(FolderError::NotFound));
    assert_eq!(house.names(), ["sub", "taken"]);
}

#[test]
fn a_move_to_another_disk_copies() {
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
    fs::create_dir(elsewhere.path().join("inside")).unwrap();
    let (house, other) = (house(), folder(&elsewhere, Access::Write));
    house.folder.put("a", b"one", OnExists::Fail).unwrap();
    house.folder.move_to("a", &other, "a", OnExists::Fail).unwrap();
    assert_eq!(fs::read_to_string(elsewhere.path().join("inside/a")).unwrap(), "one");
    assert_eq!(house.folder.stat("a").unwrap_err(), FolderError::NotFound);
}

#[test]
fn a_folder_granted_for_reading_cannot_be_changed() {
    let house = house();
    house.folder.put("a", b"one", OnExists::Fail).unwrap();
    let reading = folder(&house.root, Access::Read);
    assert_eq!(&reading.open("a").unwrap().read(0, 10).unwrap()[..], b"one");
    assert_eq!(reading.put("b", b"x", OnExists::Fail), Err(FolderError::Denied));
    assert_eq!(reading.append("a", b"x"), Err(FolderError::Denied));
    assert_eq!(reading.sync("a"), Err(FolderError::Denied));
    assert_eq!(reading.remove("a"), Err(FolderError::Denied));
    assert_eq!(reading.move_to("a", &house.folder, "b", OnExists::Fail), Err(FolderError::Denied));
    assert_eq!(house.folder.move_to("a", &reading, "b", OnExists::Fail), Err(FolderError::Denied));
}

#[test]
fn names_come_in_pages_and_an_identity_changes_with_the_file() {
    let house = house();
    for name in ["b", "a", "c"] {
        house.folder.put(name, name.repeat(3).as_bytes(), OnExists::Fail).unwrap();
    }
    let page = house.folder.scan("", None, 2).unwrap();
    assert_eq!(page.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let rest = house.folder.scan("", Some("b"), 10).unwrap();
    assert_eq!(rest.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["c", "sub"]);
    let (before, opened) = (house.folder.stat("a").unwrap(), house.folder.open("a").unwrap());
    assert_eq!((before.size, &before.identity), (3, &opened.identity()));
    assert_eq!(&opened.read(1, 100).unwrap()[..], b"aa");
    assert_eq!(opened.read(5, 1).unwrap().len(), 0);
    house.folder.put("a", b"new", OnExists::Replace).unwrap();
    assert_ne!(house.folder.stat("a").unwrap().identity, before.identity);
}
