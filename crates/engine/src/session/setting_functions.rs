//! `current_setting` and `set_config`: SHOW and SET as functions.
//!
//! Law: what `set_config` sets takes effect once its statement is done; `current_setting` in the
//! same statement tells it already. A plan with either is made for one run: views have neither.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::StringViewArray;
use arrow::datatypes::DataType;
use datafusion_common::{Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::backend_functions::ClientBackends;
use super::state::variables::{Variables, WantedSetting, find, is_custom, taken};
use crate::catalog::system::setting_of_server;

/// A client's settings as functions see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSettings {
    pub variables: Arc<Variables>,
    /// What `set_config` has asked for in the statement that runs.
    pub wanted: Arc<Mutex<Vec<WantedSetting>>>,
    /// The client among all.
    pub backends: ClientBackends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AskedSetting {
    Current,
    Set,
}

struct SettingFunction {
    asked: AskedSetting,
    settings: ClientSettings,
    signature: Signature,
}

impl ClientSettings {
    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let (asked, n_args, volatility) = match name {
            "current_setting" => (AskedSetting::Current, [1, 2], Volatility::Stable),
            "set_config" => (AskedSetting::Set, [3, 3], Volatility::Volatile),
            _ => return self.backends.function(name),
        };
        let signature = Signature::one_of(n_args.map(TypeSignature::Any).to_vec(), volatility);
        Some(Arc::new(ScalarUDF::from(SettingFunction { asked, settings: self.clone(), signature })))
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, Vec<WantedSetting>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn value(&self, name: &str) -> Option<String> {
        let wanted = self.wanted().iter().rev().find(|wanted| wanted.name == name).map(|wanted| wanted.value.clone());
        let told =
            || self.variables.get_set(name).or_else(|| setting_of_server(name)).or_else(|| self.variables.get(name));
        wanted.or_else(|| told().map(str::to_owned))
    }
}

fn unrecognized(name: &str) -> String {
    format!("unrecognized configuration parameter \"{name}\"")
}

impl SettingFunction {
    fn answer(&self, args: &[ScalarValue]) -> Result<Option<String>, String> {
        let text = |at: usize| args.get(at).and_then(|value| value.try_as_str().flatten()).map(str::to_owned);
        let says = |at: usize| matches!(args.get(at), Some(ScalarValue::Boolean(Some(true))));
        let Some(name) = text(0).map(|name| name.to_lowercase()) else {
            return match self.asked {
                AskedSetting::Current => Ok(None),
                AskedSetting::Set => Err("SET requires parameter name".to_owned()),
            };
        };
        match self.asked {
            AskedSetting::Current if says(1) => Ok(self.settings.value(&name)),
            AskedSetting::Current => self.settings.value(&name).map(Some).ok_or_else(|| unrecognized(&name)),
            AskedSetting::Set => {
                let value = match (find(&name), text(1)) {
                    (Some(variable), Some(value)) => taken(variable, &value).map_err(|error| error.message)?,
                    (Some(variable), None) => variable.default.to_owned(),
                    (None, value) if is_custom(&name) => value.unwrap_or_default(),
                    (None, _) => return Err(unrecognized(&name)),
                };
                self.settings.wanted().push(WantedSetting { name, value: value.clone(), is_local: says(2) });
                Ok(Some(value))
            }
        }
    }
}

impl ScalarUDFImpl for SettingFunction {
    fn name(&self) -> &str {
        match self.asked {
            AskedSetting::Current => "current_setting",
            AskedSetting::Set => "set_config",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(n_rows)).collect::<DfResult<Vec<_>>>()?;
        let mut values = Vec::with_capacity(n_rows);
        for row in 0..n_rows {
            let given = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            match self.answer(&given.collect::<DfResult<Vec<_>>>()?) {
                Ok(value) => values.push(value),
                Err(problem) => return exec_err!("{problem}"),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(values.into_iter().collect::<StringViewArray>())))
    }
}

impl fmt::Debug for SettingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SettingFunction").field(&self.asked).finish()
    }
}

impl PartialEq for SettingFunction {
    fn eq(&self, other: &SettingFunction) -> bool {
        self.asked == other.asked && Arc::ptr_eq(&self.settings.wanted, &other.settings.wanted)
    }
}

impl Eq for SettingFunction {}

impl Hash for SettingFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.asked.hash(state);
    }
}
