//! Who may connect, and what each may do.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::ServerError;
use crate::scram::Verifier;

/// A user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name given at login.
    pub name: String,
    /// What proves the password, in PostgreSQL's form: `SCRAM-SHA-256$4096:salt$stored:server`. The
    /// password cannot be had from it.
    pub password: String,
    /// Whether statements that write are refused.
    #[serde(default)]
    pub read_only: bool,
}

impl User {
    /// A user with a verifier made of a password.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn with_password(name: &str, password: &str) -> Result<User, ServerError> {
        let verifier = Verifier::make(password)?;
        Ok(User { name: name.to_owned(), password: verifier.to_string(), read_only: false })
    }
}

/// All users of a server.
#[derive(Clone, Debug)]
pub struct Users {
    users: BTreeMap<String, KnownUser>,
    /// Makes salts for names that no user has: they are the same at each attempt, as a user's are.
    pub(crate) secret: [u8; 32],
}

/// A user who can be checked.
#[derive(Clone, Debug)]
pub(crate) struct KnownUser {
    pub verifier: Verifier,
    pub read_only: bool,
}

impl Users {
    /// The users of a configuration.
    ///
    /// # Errors
    /// When a name occurs twice, or a password is not a verifier.
    pub fn new(users: Vec<User>) -> Result<Users, ServerError> {
        let mut known = BTreeMap::new();
        for user in users {
            let verifier = Verifier::parse(&user.password).ok_or_else(|| {
                ServerError::new(format!("the password of user \"{}\" is not a SCRAM-SHA-256 verifier", user.name))
                    .with_hint(format!("Make one with: anabranch password --user {}", user.name))
            })?;
            if known.insert(user.name.clone(), KnownUser { verifier, read_only: user.read_only }).is_some() {
                return Err(ServerError::new(format!("user \"{}\" is there twice", user.name)));
            }
        }
        Ok(Users { users: known, secret: crate::scram::random()? })
    }

    /// Whether there are none: then no user needs to prove who they are.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&KnownUser> {
        self.users.get(name)
    }

    /// Whether this is the user's password; false for an unknown name, after the same work.
    pub(crate) fn check(&self, name: &str, password: &str) -> Option<&KnownUser> {
        let known = self.users.get(name);
        let verifier = known.map_or_else(|| Verifier::of_nobody(name, &self.secret), |known| known.verifier.clone());
        let is_right = verifier.is_of(password);
        known.filter(|_| is_right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_checked_against_its_verifier() {
        let users = Users::new(vec![User::with_password("ann", "pencil").unwrap()]).unwrap();
        assert!(users.check("ann", "pencil").is_some());
        assert!(users.check("ann", "pencils").is_none());
        assert!(users.check("bob", "pencil").is_none());
    }

    #[test]
    fn a_plain_password_is_refused() {
        let user = User { name: "ann".into(), password: "pencil".into(), read_only: false };
        let error = Users::new(vec![user]).unwrap_err();
        assert!(error.message.contains("ann") && !error.message.contains("pencil"));
    }
}
