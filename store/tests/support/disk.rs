//! A disk that loses power: what a process asked of its files, as strace saw it, and what could be
//! left of that at any moment.
//!
//! A write is on the disk for good once a flush of its file that began after it has ended. Of those
//! that are not, each is there, is not, or is there in part, by sectors, whatever the order they came
//! in. Names change in order, as a journal has it: those up to the last flush of a directory are there,
//! and any number of the later ones.

use rand::{RngExt, rngs::StdRng};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

const SECTOR: usize = 512;

/// What a process did, in order.
#[derive(Debug)]
pub enum Deed {
    Name(Name),
    Write {
        file: usize,
        at: usize,
        data: Vec<u8>,
    },
    Resize {
        file: usize,
        length: usize,
    },
    /// All that these are about is on the disk.
    Flushed(Vec<usize>),
    /// All names up to here are.
    NamesFlushed,
    Said(String),
}

#[derive(Clone, Debug)]
pub enum Name {
    File { path: String, file: usize },
    Directory,
    Moved { from: String, to: String },
    Gone(String),
}

/// Reads the log of strace with `-f -y -xx`, of files below `root` and of what was said.
pub fn deeds(log: &str, root: &Path) -> Vec<Deed> {
    let mut reader = Reader {
        root: root.display().to_string(),
        ..Reader::default()
    };
    for line in log.lines() {
        reader.line(line);
    }
    reader.deeds
}

#[derive(Default)]
struct Reader {
    root: String,
    deeds: Vec<Deed>,
    files: HashMap<String, usize>,
    files_count: usize,
    /// Where the next `write` of a descriptor goes.
    places: HashMap<String, usize>,
    /// By thread: the call that has begun, and where in `deeds`.
    begun: HashMap<String, (String, usize)>,
    /// Deeds that a flush which begins now does not cover: they have not ended.
    under_way: HashSet<usize>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let Some((thread, call)) = line.trim_start().split_once(' ') else {
            return;
        };
        let call = call.trim_start();
        if let Some(beginning) = call.strip_suffix(" <unfinished ...>") {
            let place = self.deeds.len();
            if beginning.starts_with("pwrite64") || beginning.starts_with("write") {
                self.done(beginning, "0", place);
                self.under_way.extend(place..self.deeds.len());
            }
            let begun = (beginning.to_owned(), place);
            self.begun.insert(thread.to_owned(), begun);
        } else if let Some(rest) = call.strip_prefix("<... ") {
            let Some((beginning, place)) = self.begun.remove(thread) else {
                return;
            };
            let (_, end) = rest.split_once("resumed>").expect("how strace says it");
            let end = end.trim_start_matches([')', ' ', '=']);
            if beginning.starts_with("pwrite64") || beginning.starts_with("write") {
                self.under_way.remove(&place);
            } else {
                self.done(&beginning, result_of(end), place);
            }
        } else if let Some((beginning, result)) = call.rsplit_once(" = ") {
            let beginning = beginning.trim_end();
            let beginning = beginning.strip_suffix(')').unwrap_or(beginning);
            self.done(beginning, result_of(result), self.deeds.len());
        }
    }

    /// A call that began when there were `begun` deeds.
    fn done(&mut self, call: &str, result: &str, begun: usize) {
        let Some((name, arguments)) = call.split_once('(') else {
            return;
        };
        if result.starts_with('-') {
            return;
        }
        let arguments: Vec<&str> = arguments.split(", ").collect();
        let path = |number: usize| arguments.get(number).and_then(|text| self.path(text));
        match name {
            "openat" => {
                let Some(path) = path(1) else { return };
                if let Some(descriptor) = result.split('<').next() {
                    self.places.insert(descriptor.to_owned(), 0);
                }
                let flags = arguments[2];
                if flags.contains("O_CREAT") && !self.files.contains_key(&path) {
                    let file = self.files_count;
                    self.files_count += 1;
                    self.files.insert(path.clone(), file);
                    self.deeds.push(Deed::Name(Name::File { path, file }));
                } else if flags.contains("O_TRUNC") {
                    let file = self.files[&path];
                    self.deeds.push(Deed::Resize { file, length: 0 });
                }
            }
            "mkdir" => {
                if path(0).is_some() {
                    self.deeds.push(Deed::Name(Name::Directory));
                }
            }
            "rename" => {
                let (Some(from), Some(to)) = (path(0), path(1)) else {
                    return;
                };
                self.moved(&from, &to);
                self.deeds.push(Deed::Name(Name::Moved { from, to }));
            }
            "unlink" | "rmdir" => {
                let Some(path) = path(0) else { return };
                self.files.remove(&path);
                self.deeds.push(Deed::Name(Name::Gone(path)));
            }
            "unlinkat" => {
                let (Some(directory), Some(name)) =
                    (self.descriptor(arguments[0]), bytes(arguments[1]))
                else {
                    return;
                };
                let path = format!("{directory}/{}", String::from_utf8_lossy(&name));
                self.files.remove(&path);
                self.deeds.push(Deed::Name(Name::Gone(path)));
            }
            "pwrite64" => self.written(&arguments, arguments[3].parse().ok()),
            "write" => self.written(&arguments, None),
            "ftruncate" => {
                if let Some(file) = self.file(arguments[0]) {
                    let length = arguments[1].parse().expect("a length");
                    self.deeds.push(Deed::Resize { file, length });
                }
            }
            "fsync" | "fdatasync" => self.flushed(arguments[0], begun),
            other => panic!("a call that is not followed: {other}"),
        }
    }

    fn written(&mut self, arguments: &[&str], at: Option<usize>) {
        let data = bytes(arguments[1]).expect("what is written is in the log");
        if let Some(file) = self.file(arguments[0]) {
            let descriptor = arguments[0].split('<').next().unwrap_or_default();
            let place = self.places.entry(descriptor.to_owned()).or_default();
            let at = at.unwrap_or_else(|| {
                *place += data.len();
                *place - data.len()
            });
            self.deeds.push(Deed::Write { file, at, data });
        } else if arguments[0].starts_with("1<") {
            let text = String::from_utf8_lossy(&data).into_owned();
            let said = text.lines().map(|line| Deed::Said(line.to_owned()));
            self.deeds.extend(said);
        }
    }

    fn flushed(&mut self, descriptor: &str, begun: usize) {
        let Some(file) = self.file(descriptor) else {
            if self.descriptor(descriptor).is_some() {
                self.deeds.push(Deed::NamesFlushed);
            }
            return;
        };
        let of_file = |deed: &Deed| match deed {
            Deed::Write { file: of, .. } | Deed::Resize { file: of, .. } => *of == file,
            _ => false,
        };
        let covered = (0..begun)
            .filter(|place| of_file(&self.deeds[*place]) && !self.under_way.contains(place));
        let covered = covered.collect();
        self.deeds.push(Deed::Flushed(covered));
    }

    fn moved(&mut self, from: &str, to: &str) {
        let below = format!("{from}/");
        let old: Vec<String> = self.files.keys().cloned().collect();
        for path in old {
            let new = if path == from {
                to.to_owned()
            } else if let Some(rest) = path.strip_prefix(&below) {
                format!("{to}/{rest}")
            } else {
                continue;
            };
            let file = self.files.remove(&path).expect("it was there");
            self.files.insert(new, file);
        }
    }

    fn file(&self, descriptor: &str) -> Option<usize> {
        self.files.get(&self.descriptor(descriptor)?).copied()
    }

    /// The path behind `5<...>`, if it is below the root.
    fn descriptor(&self, text: &str) -> Option<String> {
        let (_, path) = text.split_once('<')?;
        let path = path.split('>').next()?;
        self.below(&unescape(path))
    }

    fn path(&self, quoted: &str) -> Option<String> {
        self.below(&bytes(quoted)?)
    }

    fn below(&self, path: &[u8]) -> Option<String> {
        let path = String::from_utf8_lossy(path);
        path.starts_with(&self.root).then(|| path.into_owned())
    }
}

/// Of `5<path>` or `-1 ENOENT (...)`.
fn result_of(text: &str) -> &str {
    text.trim().split(' ').next().unwrap_or_default()
}

fn bytes(quoted: &str) -> Option<Vec<u8>> {
    let inner = quoted.trim_end_matches(')').strip_prefix('"')?;
    let inner = inner.strip_suffix('"').expect("strace cut nothing off");
    Some(unescape(inner))
}

fn unescape(text: &str) -> Vec<u8> {
    let digits = text.split("\\x").filter(|part| !part.is_empty());
    digits
        .map(|digits| u8::from_str_radix(digits, 16).expect("strace -xx"))
        .collect()
}

/// What is left when the power goes after the first `count` deeds.
pub fn left(deeds: &[Deed], count: usize, random: &mut StdRng) -> BTreeMap<String, Vec<u8>> {
    let deeds = &deeds[..count];
    let mut flushed: HashSet<usize> = HashSet::new();
    let mut names = Vec::new();
    let mut names_flushed = 0;
    for deed in deeds {
        match deed {
            Deed::Flushed(covered) => flushed.extend(covered),
            Deed::NamesFlushed => names_flushed = names.len(),
            Deed::Name(name) => names.push(name),
            _ => {}
        }
    }
    let mut files: HashMap<usize, Vec<u8>> = HashMap::new();
    for (place, deed) in deeds.iter().enumerate() {
        let is_kept = flushed.contains(&place);
        match deed {
            Deed::Write { file, at, data } => {
                let file = files.entry(*file).or_default();
                match is_kept {
                    true => put(file, *at, data),
                    false => put_in_part(file, *at, data, random),
                }
            }
            Deed::Resize { file, length } if is_kept || random.random_bool(0.5) => {
                files.entry(*file).or_default().resize(*length, 0);
            }
            _ => {}
        }
    }
    let names_kept = random.random_range(names_flushed..=names.len());
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for name in &names[..names_kept] {
        match name {
            Name::File { path, file } => drop(there.insert(path.clone(), *file)),
            Name::Directory => {}
            Name::Moved { from, to } => {
                let below = format!("{from}/");
                let moved = there
                    .keys()
                    .filter(|path| **path == *from || path.starts_with(&below));
                let moved: Vec<String> = moved.cloned().collect();
                for path in moved {
                    let file = there.remove(&path).expect("it is there");
                    there.insert(format!("{to}{}", &path[from.len()..]), file);
                }
            }
            Name::Gone(path) => drop(there.remove(path)),
        }
    }
    there
        .into_iter()
        .map(|(path, file)| (path, files.get(&file).cloned().unwrap_or_default()))
        .collect()
}

fn put(file: &mut Vec<u8>, at: usize, data: &[u8]) {
    let end = at + data.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(data);
}

/// All of it, nothing, or some of its sectors.
fn put_in_part(file: &mut Vec<u8>, at: usize, data: &[u8], random: &mut StdRng) {
    match random.random_range(0..3) {
        0 => {}
        1 => put(file, at, data),
        _ => {
            let mut begin = 0;
            while begin < data.len() {
                // Sectors of the disk, not of the write.
                let end = (begin + SECTOR - (at + begin) % SECTOR).min(data.len());
                if random.random_bool(0.5) {
                    put(file, at + begin, &data[begin..end]);
                }
                begin = end;
            }
        }
    }
}
