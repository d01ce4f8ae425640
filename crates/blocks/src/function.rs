//! What is known of a function: its blocks, and how often control goes from one to another.

use serde::Deserialize;

/// A function's blocks, in the order that they have now; block 0 is the entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Bytes of each block.
    pub sizes: Vec<u32>,
    /// How often each block was executed.
    pub counts: Vec<u64>,
    pub edges: Vec<Edge>,
}

/// Control goes from the end of a block to the start of another, `count` times. As JSON: `[SOURCE, TARGET, COUNT]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "(usize, usize, u64)")]
pub struct Edge {
    pub source: usize,
    pub target: usize,
    pub count: u64,
}

impl From<(usize, usize, u64)> for Edge {
    fn from((source, target, count): (usize, usize, u64)) -> Self {
        Self {
            source,
            target,
            count,
        }
    }
}

impl Function {
    /// Return what is wrong with the function, if it is not a valid one.
    pub fn check(&self) -> Result<(), String> {
        let blocks = self.sizes.len();
        if blocks == 0 {
            return Err("a function without blocks".to_owned());
        }
        if self.counts.len() != blocks {
            return Err(format!("{blocks} sizes, but {} counts", self.counts.len()));
        }
        match self
            .edges
            .iter()
            .find(|edge| edge.source.max(edge.target) >= blocks)
        {
            Some(edge) => Err(format!(
                "an edge from block {} to {} of {blocks}",
                edge.source, edge.target
            )),
            None => Ok(()),
        }
    }

    /// Return the executions of these blocks, per byte of them.
    pub fn density(&self, blocks: &[usize]) -> f64 {
        let executed: f64 = blocks.iter().map(|&block| self.counts[block] as f64).sum();
        let bytes: f64 = blocks
            .iter()
            .map(|&block| f64::from(self.sizes[block]))
            .sum();
        executed / bytes.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(), String> {
        serde_json::from_str::<Function>(line)
            .map_err(|error| error.to_string())?
            .check()
    }

    #[test]
    fn what_is_no_function_is_refused_with_the_reason() {
        assert_eq!(
            read(r#"{"sizes":[4,8],"counts":[1,2],"edges":[[0,1,7]]}"#),
            Ok(())
        );
        for (line, why) in [
            (r#"{"sizes":[],"counts":[],"edges":[]}"#, "without blocks"),
            (
                r#"{"sizes":[4],"counts":[],"edges":[]}"#,
                "1 sizes, but 0 counts",
            ),
            (
                r#"{"sizes":[4],"counts":[1],"edges":[[0,1,7]]}"#,
                "from block 0 to 1 of 1",
            ),
            (
                r#"{"sizes":[4],"counts":[1],"edges":[[0,-1,7]]}"#,
                "invalid value",
            ),
            (r#"{"sizes":[4],"counts":[1]}"#, "missing field"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(why), "{line}: {refused}");
        }
    }
}
