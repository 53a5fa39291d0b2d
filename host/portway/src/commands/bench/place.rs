//! Where a benchmark keeps its messages: in a file of its own, or in databases of its own on a server.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use portway_store_postgres::bench::BenchDatabase;

/// The store of every project that a benchmark makes.
pub struct Place {
    server: Option<String>,
    databases: Mutex<Vec<Arc<BenchDatabase>>>,
}

impl Place {
    /// Without the address of a server every project has a file.
    pub fn new(server: Option<String>) -> Place {
        Place { server, databases: Mutex::default() }
    }

    /// For a case that stores nothing.
    pub fn in_files() -> Place {
        Place::new(None)
    }

    /// As a figure names it.
    pub fn name(&self) -> &'static str {
        match self.server {
            Some(_) => "postgresql",
            None => "sqlite",
        }
    }

    /// For a case that means nothing on a file.
    pub fn needs_server(&self, why: &str) -> Result<()> {
        match self.server {
            Some(_) => Ok(()),
            None => bail!("this case needs `--store postgres://…`: {why}"),
        }
    }

    /// A database of its own; none: a file.
    pub async fn database(&self) -> Result<Option<Arc<BenchDatabase>>> {
        let Some(server) = &self.server else { return Ok(None) };
        let what =
            "cannot make a database for the benchmark, which the user of `--store` has to be allowed to";
        let database = Arc::new(BenchDatabase::new(server).context(what)?);
        // First, since whoever is stopped meanwhile has made it perhaps.
        self.databases.lock().unwrap_or_else(PoisonError::into_inner).push(database.clone());
        database.create().await.context(what)?;
        Ok(Some(database))
    }

    /// Removes every database that was made, whoever still uses it.
    pub async fn clean(&self) -> Result<()> {
        let databases = std::mem::take(&mut *self.databases.lock().unwrap_or_else(PoisonError::into_inner));
        for database in databases {
            database.remove().await.context("a database of this benchmark is left behind")?;
        }
        Ok(())
    }
}
