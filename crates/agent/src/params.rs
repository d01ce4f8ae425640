//! Parameters of one test: its defaults with what the user said, strictly checked.

use crate::nearest::nearest;
use kdyno_proto::Lane;
use std::collections::BTreeMap;

/// A whole number that the user may choose.
#[derive(Debug)]
pub struct Param {
    pub name: &'static str,
    pub description: &'static str,
    pub default: u64,
    /// Another default where time passes, as instructions aren't counted.
    pub in_real_time: Option<u64>,
    pub min: u64,
    pub max: u64,
}

/// Every parameter of a test with its value.
#[derive(Debug, Clone)]
pub struct Params(Vec<(&'static str, u64)>);

impl Param {
    pub fn default(&self, lane: Lane) -> u64 {
        self.in_real_time.filter(|_| !lane.is_icount()).unwrap_or(self.default)
    }
}

impl Params {
    /// Return the defaults of `lane`, overridden by `given`. The message of a refusal is for the user, and names the
    /// test.
    pub fn resolve(
        test: &str,
        params: &'static [Param],
        lane: Lane,
        given: &BTreeMap<String, u64>,
    ) -> Result<Params, String> {
        for (name, &value) in given {
            check(test, params, name, value)?;
        }
        let value = |param: &Param| given.get(param.name).copied().unwrap_or(param.default(lane));
        Ok(Params(params.iter().map(|param| (param.name, value(param))).collect()))
    }

    /// Return the value of a parameter that the test declares.
    pub fn get(&self, name: &str) -> usize {
        let entry = self.0.iter().find(|(declared, _)| *declared == name);
        entry.expect("a benchmark asks for what its file declares").1 as usize
    }
}

fn check(test: &str, params: &[Param], name: &str, value: u64) -> Result<(), String> {
    let Some(param) = params.iter().find(|param| param.name == name) else {
        let known = params.iter().map(|param| param.name);
        return Err(match nearest(name, known) {
            Some(near) => format!("{test} has no parameter '{name}': did you mean '{near}'?"),
            None => format!("{test} has no parameters"),
        });
    };
    if (param.min..=param.max).contains(&value) {
        return Ok(());
    }
    Err(format!("{test}.{name}={value} is out of range: {} to {}", param.min, param.max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn resolve(test: &str, given: &[(&str, u64)]) -> Result<Params, String> {
        let given = given.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        bench::find(test).unwrap().resolve(Lane::usual(false), &given)
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let params = resolve("lat_ctx", &[("size_kb", 4)]).unwrap();
        assert_eq!((params.get("processes"), params.get("size_kb")), (2, 4));
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_nearest_name() {
        let error = resolve("lat_ctx", &[("proceses", 4)]).unwrap_err();
        assert_eq!(error, "lat_ctx has no parameter 'proceses': did you mean 'processes'?");
        assert_eq!(resolve("lat_pipe", &[("x", 1)]).unwrap_err(), "lat_pipe has no parameters");
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let error = resolve("lat_ctx", &[("processes", 1)]).unwrap_err();
        assert!(error.starts_with("lat_ctx.processes=1 is out of range: 2 to "), "{error}");
    }
}
