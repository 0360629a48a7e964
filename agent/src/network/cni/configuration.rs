//! Which network the node's directory of configurations asks for: the first file by name, as libcni
//! and containerd choose. Parsing is pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const LIST: &str = "conflist";
const SUFFIXES: [&str; 3] = ["conf", LIST, "json"];
/// Of one file; real ones have some hundred.
const FILE_BYTES_MAX: u64 = 1 << 20;
const PLUGINS_MAX: usize = 64;

/// Of the specification; the order is that of the versions.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Version {
    #[serde(rename = "0.3.0")]
    V0_3_0,
    #[serde(rename = "0.3.1")]
    V0_3_1,
    #[serde(rename = "0.4.0")]
    V0_4_0,
    #[serde(rename = "1.0.0")]
    V1_0_0,
    #[serde(rename = "1.1.0")]
    V1_1_0,
}

impl Version {
    const ALL: [Self; 5] = [
        Self::V0_3_0,
        Self::V0_3_1,
        Self::V0_4_0,
        Self::V1_0_0,
        Self::V1_1_0,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|version| version.text() == text)
    }
}

/// A network: what its plugins are given, in the order of ADD.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Network {
    pub name: String,
    pub version: Version,
    #[serde(default)]
    pub disable_check: bool,
    #[serde(default)]
    pub disable_gc: bool,
    pub plugins: Vec<Plugin>,
}

/// A JSON object with a `type` that names a program.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Plugin(pub Map<String, Value>);

impl Plugin {
    pub fn program(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    /// As libcni speaks of it.
    pub fn description(&self) -> String {
        let program = self.program();
        match self.text("name") {
            Some(name) if !name.is_empty() => format!("type={program:?} name={name:?}"),
            _ => format!("type={program:?}"),
        }
    }

    pub fn has(&self, capability: &str) -> bool {
        let declared = self.0.get("capabilities");
        declared.and_then(|all| all.get(capability)?.as_bool()) == Some(true)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("failed to load CNI config file {path}: {problem}")]
    Invalid { path: PathBuf, problem: String },
}

/// None when nothing is there.
pub fn find(directory: &Path) -> Result<Option<Network>, ConfigurationError> {
    let Some(path) = files(directory, &SUFFIXES)?.into_iter().next() else {
        return Ok(None);
    };
    let invalid = |problem| ConfigurationError::Invalid {
        path: path.clone(),
        problem,
    };
    let text = read(&path)?;
    if path.extension().is_none_or(|suffix| suffix != LIST) {
        return single(&text).map(Some).map_err(invalid);
    }
    let list = list(&text).map_err(invalid)?;
    let mut network = list.network;
    if list.is_open {
        for path in files(&directory.join(&network.name), &SUFFIXES[..1])? {
            let plugin = object(&read(&path)?).and_then(plugin);
            let plugin = plugin.map_err(|problem| ConfigurationError::Invalid { path, problem })?;
            network.plugins.push(plugin);
        }
    }
    match network.plugins.len() {
        0 => Err(invalid("it has no plugins".to_owned())),
        1..=PLUGINS_MAX => Ok(Some(network)),
        _ => Err(invalid(format!("it has more than {PLUGINS_MAX} plugins"))),
    }
}

/// By name. None without the directory.
fn files(directory: &Path, suffixes: &[&str]) -> Result<Vec<PathBuf>, ConfigurationError> {
    let unreadable = |source| ConfigurationError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        let is_ours = suffix.is_some_and(|suffix| suffixes.contains(&suffix));
        if is_ours && !path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, ConfigurationError> {
    let unreadable = |source| ConfigurationError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    // Nobody need be at the other end of a FIFO.
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(ConfigurationError::Invalid {
            path: path.to_owned(),
            problem: "it is no regular file".to_owned(),
        });
    }
    let mut bounded = file.take(FILE_BYTES_MAX + 1);
    bounded.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigurationError::Invalid {
            path: path.to_owned(),
            problem: format!("it is longer than {FILE_BYTES_MAX} bytes"),
        });
    }
    Ok(text)
}

struct List {
    network: Network,
    /// Files in a directory of the network's name add plugins.
    is_open: bool,
}

/// What a `.conflist` says.
fn list(text: &str) -> Result<List, String> {
    let fields = object(text)?;
    let is_open = !boolean(&fields, "loadOnlyInlinedPlugins")?;
    let plugins = match fields.get("plugins") {
        Some(Value::Array(plugins)) if !plugins.is_empty() => plugins.clone(),
        Some(Value::Array(_)) => return Err("it has no plugins".to_owned()),
        Some(_) => return Err("its \"plugins\" are no list".to_owned()),
        None if is_open => Vec::new(),
        None => return Err("it has no \"plugins\"".to_owned()),
    };
    let each = plugins.into_iter().map(|one| match one {
        Value::Object(fields) => plugin(fields),
        _ => Err("one of its plugins is no object".to_owned()),
    });
    let network = Network {
        name: name(&fields)?,
        version: version(&fields)?,
        disable_check: boolean(&fields, "disableCheck")?,
        disable_gc: boolean(&fields, "disableGC")?,
        plugins: each.collect::<Result<_, _>>()?,
    };
    Ok(List { network, is_open })
}

/// A file of one plugin, from before there were lists.
fn single(text: &str) -> Result<Network, String> {
    let fields = object(text)?;
    if fields.contains_key("plugins") && !fields.contains_key("type") {
        return Err("it is a list of plugins, and its name must end in .conflist".to_owned());
    }
    Ok(Network {
        name: name(&fields)?,
        version: version(&fields)?,
        disable_check: false,
        disable_gc: false,
        plugins: vec![plugin(fields)?],
    })
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("it is no JSON: {error}")),
    }
}

fn plugin(fields: Map<String, Value>) -> Result<Plugin, String> {
    let plugin = Plugin(fields);
    match plugin.program() {
        "" => Err("a plugin has no \"type\"".to_owned()),
        "." | ".." => Err("a plugin's \"type\" is no program".to_owned()),
        name if name.contains('/') => Err(format!("invalid plugin name: {name}")),
        _ => Ok(plugin),
    }
}

fn name(fields: &Map<String, Value>) -> Result<String, String> {
    let name = match fields.get("name") {
        Some(Value::String(name)) => name,
        Some(_) => return Err("its \"name\" is no text".to_owned()),
        None => return Err("it has no \"name\"".to_owned()),
    };
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match is_name && name.chars().all(is_inner) {
        true => Ok(name.clone()),
        false => Err(format!(
            "its name {name:?} has characters that no network has"
        )),
    }
}

/// The greatest that is known here, of all that the configuration allows.
fn version(fields: &Map<String, Value>) -> Result<Version, String> {
    let mut texts = Vec::new();
    match fields.get("cniVersion") {
        Some(Value::String(text)) => texts.push(text.as_str()),
        Some(_) => return Err("its \"cniVersion\" is no text".to_owned()),
        None => {}
    }
    match fields.get("cniVersions") {
        Some(Value::Array(all)) => {
            let each = all.iter().map(|one| {
                one.as_str()
                    .ok_or("one of its \"cniVersions\" is no text".to_owned())
            });
            texts.extend(each.collect::<Result<Vec<_>, _>>()?);
        }
        Some(_) => return Err("its \"cniVersions\" are no list".to_owned()),
        None => {}
    }
    let known = texts.iter().filter_map(|text| Version::parse(text)).max();
    known.ok_or_else(|| {
        let asked = match texts.is_empty() {
            true => "it has no \"cniVersion\"".to_owned(),
            false => format!("its CNI version {} is not known", texts.join(", ")),
        };
        let ours = Version::ALL.map(Version::text).join(", ");
        format!("{asked}; one of {ours} is needed")
    })
}

/// Written as a text, too.
fn boolean(fields: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match fields.get(key) {
        None => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(format!("its {key:?} is neither true nor false")),
    }
}

#[cfg(test)]
mod tests;
