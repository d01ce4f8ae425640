//! The exact model: each benchmark that executes what was moved is replayed.

use crate::anneal::Model;
use crate::job::Job;
use crate::part::{Part, parts_of, value};
use crate::place::fetched;
use crate::predict::{in_parallel, weighed};
use crate::replay::replay;

pub struct Exact<'a> {
    job: &'a Job,
    parts: &'a [Part<'a>],
    times: Vec<Vec<u32>>,
    parts_of: Vec<Vec<usize>>,
    placed: Vec<u64>,
    /// Cycles beside fetching, by part and family.
    rest: Vec<Vec<f64>>,
    /// Values, by part and family.
    values: Vec<Vec<f64>>,
    sum: f64,
    /// The state before the latest changes.
    before: Before,
}

#[derive(Default)]
struct Before {
    former_places: Vec<(u32, u64)>,
    /// The values by part.
    values: Vec<(usize, Vec<f64>)>,
    sum: f64,
}

impl<'a> Exact<'a> {
    pub fn new(job: &'a Job, parts: &'a [Part<'a>], placed: Vec<u64>) -> Exact<'a> {
        let recorded = job.units.iter().map(|unit| unit.start).collect();
        let times = parts.iter().map(|part| job.traces[part.trace].blocks.iter().map(|block| block.time).collect());
        let mut exact = Exact {
            job,
            parts,
            times: times.collect(),
            parts_of: parts_of(job, parts),
            placed: recorded,
            rest: Vec::new(),
            values: Vec::new(),
            sum: 0.0,
            before: Before::default(),
        };
        let all: Vec<usize> = (0..parts.len()).collect();
        let fetching = exact.fetching(&all);
        let rest = |(part, fetching): (&Part, &Vec<f64>)| {
            part.before.iter().zip(fetching).map(|(cycles, fetching)| cycles - fetching).collect()
        };
        exact.rest = parts.iter().zip(&fetching).map(rest).collect();
        exact.placed = placed;
        exact.values = exact.values_of(&all);
        exact.sum = exact.values.iter().flatten().sum();
        exact
    }

    /// Return the modelled cycles of these parts, by family.
    pub fn fetching(&self, parts: &[usize]) -> Vec<Vec<f64>> {
        let job = self.job;
        let by_family = in_parallel(job.families.len(), |family| {
            let of_part = |part: &usize| {
                let Part { trace, steps, .. } = &self.parts[*part];
                let blocks = fetched(&job.traces[*trace], &job.units, &self.placed);
                weighed(&replay(steps, &blocks, &self.times[*part], &job.families[family]), job.weights[family])
            };
            parts.iter().map(of_part).collect::<Vec<f64>>()
        });
        (0..parts.len()).map(|place| by_family.iter().map(|costs| costs[place]).collect()).collect()
    }

    fn values_of(&self, parts: &[usize]) -> Vec<Vec<f64>> {
        let value_of = |(part, fetching): (&usize, Vec<f64>)| {
            let (rest, before) = (&self.rest[*part], &self.parts[*part].before);
            let terms = rest.iter().zip(before).zip(fetching);
            terms.map(|((rest, before), fetching)| value(self.job, rest + fetching, *before)).collect()
        };
        parts.iter().zip(self.fetching(parts)).map(value_of).collect()
    }
}

impl Model for Exact<'_> {
    fn value(&self) -> f64 {
        self.sum / (self.parts.len() * self.job.families.len()).max(1) as f64
    }

    fn moved(&mut self, changes: &[(u32, u64)]) {
        let former_places: Vec<(u32, u64)> =
            changes.iter().map(|(unit, _)| (*unit, self.placed[*unit as usize])).collect();
        changes.iter().for_each(|(unit, at)| self.placed[*unit as usize] = *at);
        let mut parts: Vec<usize> =
            changes.iter().flat_map(|(unit, _)| self.parts_of[*unit as usize].clone()).collect();
        parts.sort_unstable();
        parts.dedup();
        let values = self.values_of(&parts);
        let old =
            parts.iter().zip(values).map(|(part, values)| (*part, std::mem::replace(&mut self.values[*part], values)));
        let old = old.collect();
        self.before = Before { former_places, values: old, sum: self.sum };
        self.sum = self.values.iter().flatten().sum();
    }

    fn undo(&mut self) {
        let Before { former_places, values, sum } = std::mem::take(&mut self.before);
        former_places.into_iter().for_each(|(unit, at)| self.placed[unit as usize] = at);
        values.into_iter().for_each(|(part, values)| self.values[part] = values);
        self.sum = sum;
    }
}
