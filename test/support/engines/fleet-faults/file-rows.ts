/** Faults of the files that a run made. Files are read during the run, as soon as they are reported. */
import { ALWAYS, type FaultRow, type Within } from './row.ts'

const tries: Within = { fileRetryMs: 7, pollMaxMs: 2 }

export const FILE_ROWS: readonly FaultRow[] = [
  { name: '500 from /view, twice', faults: { viewError: 2 }, since: 'point', ends: 'succeeded', within: tries },
  { name: '500 from /view for good', faults: { viewError: ALWAYS }, since: 'submit', ends: 'moved', within: tries },
  { name: '404 from /view, once', faults: { viewMissing: 1 }, since: 'point', ends: 'succeeded', within: tries },
  { name: '404 from /view for good', faults: { viewMissing: ALWAYS }, since: 'submit', ends: 'moved', within: tries },
  {
    name: 'a connection that ends instead of a file, twice',
    faults: { dropView: 2 },
    since: 'point',
    ends: 'succeeded',
    within: tries,
  },
  {
    name: 'a connection that ends instead of a file, for good',
    faults: { dropView: ALWAYS },
    since: 'submit',
    ends: 'moved',
    within: tries,
  },
  {
    name: '500 to the question whether a file is there (asked by later attempts)',
    faults: { viewHeadStatus: 500 },
    since: 'submit',
    ends: 'succeeded',
    within: tries,
  },
  {
    name: 'a file that breaks off, twice',
    faults: { viewTruncated: 2 },
    since: 'point',
    ends: 'succeeded',
    within: tries,
  },
  {
    name: 'a file that breaks off, and no ranges',
    faults: { viewTruncated: 1, noRanges: true },
    since: 'point',
    ends: 'succeeded',
    within: tries,
  },
  {
    name: 'a file with a wrong length',
    faults: { viewWrongLength: 1 },
    since: 'point',
    ends: 'succeeded',
    within: tries,
  },
  {
    name: 'a file with a wrong length for good, and no ranges',
    faults: { viewWrongLength: ALWAYS, noRanges: true },
    since: 'submit',
    ends: 'moved',
    within: tries,
  },
  {
    name: 'a file at one byte per second',
    faults: { viewBytesPerSecond: 1 },
    since: 'submit',
    ends: 'moved',
    within: { ...tries, filePaceWindowMs: 4, fileFirstByteMs: 1 },
  },
  {
    name: 'no answer from /view, once',
    faults: { mute: { '/view': 1 } },
    since: 'submit',
    ends: 'succeeded',
    within: { ...tries, fileFirstByteMs: 1 },
  },
  {
    name: 'files that all have one name',
    faults: { duplicateNames: true },
    since: 'birth',
    ends: 'succeeded',
    within: tries,
  },
]
