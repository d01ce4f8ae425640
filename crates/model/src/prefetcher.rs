//! Which lines a stream prefetcher would have fetched in time: those at a constant distance from the line before,
//! within a page.

/// Lines further apart are not taken for one stream.
const LONGEST_STRIDE: i64 = 32;
/// log2 of the lines of a page: processors don't prefetch beyond, for what is next in memory may belong to another
/// program.
const PAGE_BITS: u32 = 6;

#[derive(Clone, Copy, Default)]
struct Stream {
    last: u64,
    stride: i64,
    /// The stride was seen twice: what follows is fetched ahead.
    confirmed: bool,
    /// When it was last of use.
    used: u64,
}

pub struct Prefetcher {
    streams: Vec<Stream>,
    clock: u64,
}

impl Prefetcher {
    pub fn new(streams: usize) -> Prefetcher {
        Prefetcher { streams: vec![Stream::default(); streams], clock: 0 }
    }

    /// Take a line that missed the first cache; return whether it would have been there already.
    pub fn missed(&mut self, line: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        if let Some(stream) = self
            .streams
            .iter_mut()
            .find(|stream| stream.stride != 0 && stream.last.wrapping_add_signed(stream.stride) == line)
        {
            let ahead = stream.confirmed && stream.last >> PAGE_BITS == line >> PAGE_BITS;
            *stream = Stream { last: line, confirmed: true, used: clock, ..*stream };
            return ahead;
        }
        let near = |stream: &Stream| (1..=LONGEST_STRIDE).contains(&(line.wrapping_sub(stream.last) as i64).abs());
        let distance = |stream: &Stream| line.wrapping_sub(stream.last) as i64;
        if let Some(stream) =
            self.streams.iter_mut().find(|stream| stream.used > 0 && !stream.confirmed && near(stream))
        {
            *stream = Stream { last: line, stride: distance(stream), confirmed: false, used: clock };
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = Stream { last: line, stride: 0, confirmed: false, used: clock };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(lines: impl Iterator<Item = u64>) -> usize {
        let mut prefetcher = Prefetcher::new(4);
        lines.filter(|line| prefetcher.missed(*line)).count()
    }

    #[test]
    fn a_stream_is_followed_from_its_fourth_line_on_but_for_the_first_of_a_page() {
        assert_eq!(ahead(128..192), 61);
        assert_eq!(ahead((128..192).rev()), 61);
        assert_eq!(ahead((0..32).map(|i| 1024 + 4 * i)), 32 - 3 - 1);
    }

    #[test]
    fn streams_are_followed_side_by_side() {
        assert_eq!(ahead((0..64).flat_map(|i| [64 * 100 + i, 64 * 200 + i])), 122);
    }

    #[test]
    fn lines_without_an_order_are_not() {
        let mut state = 1_u64;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        });
        assert!(ahead(random.take(1000)) < 5);
    }
}
