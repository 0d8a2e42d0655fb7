/** A trial as a page to read and as JSON. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FlawKind } from '../load/told.ts'
import { countBy, type TrialReport } from '../trial.ts'

/** Each promise with the kinds of flaws that would break it. */
const PROMISES: readonly (readonly [words: string, kinds: readonly FlawKind[]])[] = [
  ['lost', ['lost']],
  ['doubled completions', ['doubled']],
  ['wrong bytes', ['wrong bytes']],
  ['double charges', ['double charge']],
  ['books that do not balance', ['books']],
  ['streams and sockets with a wrong end', ['stream']],
  ['left leased, held or counted', ['left over']],
  ['bytes without a record', ['orphan']],
  ['processes that ended by themselves', ['died']],
  ['answers against the documents', ['contract']],
  ['accounts with more under way than they may have', ['over a limit']],
  ['excuses beyond the few that are allowed', ['too many excuses']],
]

/** Resolves with the path of the page. */
export async function writeReport(report: TrialReport, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${report.seed}.json`), `${JSON.stringify(report, null, 1)}\n`)
  const page = join(folder, `${report.seed}.md`)
  await writeFile(page, toMarkdown(report))
  return page
}

export function toMarkdown(report: TrialReport): string {
  const {
    seed,
    shape,
    acknowledged,
    ends,
    refused,
    faults,
    failOvers,
    givenUp,
    unpaid,
    looksAtLimits,
    flaws,
    evidence,
    loadMs,
    tookMs,
  } = report
  const count = (kinds: readonly FlawKind[]) => flaws.filter(({ kind }) => kinds.includes(kind)).length
  const minutes = loadMs / 60_000
  const nodes = [shape.apis, shape.workers, shape.engines, shape.joined].join()
  const rates = [report.rates.jobs, report.rates.calls, report.rates.uploads].join()
  const startedMs = Date.parse(report.startedAt)
  const lines = [
    `# Chaos, seed ${seed}: ${flaws.length === 0 ? 'passed' : `${flaws.length} flaws`}`,
    '',
    `${minutes.toFixed(1)} minutes of load (${(tookMs / 60_000).toFixed(1)} with start, settling and checks) on ${report.startedAt.slice(0, 10)}:`,
    `${shape.apis} API nodes, ${shape.workers} workers (${shape.joined} of them joined over HTTP), ${shape.engines} engines, Postgres with a standby, ${shape.bus === 'nats' ? 'a NATS server' : 'notices of Postgres and live links'} between nodes, bytes in ${shape.bytes === 'bucket' ? 'a bucket' : 'a folder'}. Repeat with \`npm run test:chaos -- ${Math.round(minutes)} ${seed} --nodes ${nodes} --rates ${rates} --bus ${shape.bus}\`.`,
    '',
    '## What was acknowledged',
    '',
    ...table(
      ['what', 'count', 'per second'],
      [...Object.entries(acknowledged).map(([what, n]) => [what, `${n}`, (n / (loadMs / 1000)).toFixed(2)])],
    ),
    '',
    ...table(
      ['jobs that ended as', 'count'],
      Object.entries(ends).map(([end, n]) => [end, `${n}`]),
    ),
    '',
    '## What of it does not hold',
    '',
    ...table(
      ['promise', 'broken'],
      PROMISES.map(([words, kinds]) => [words, `${count(kinds)}`]),
    ),
    '',
    `Limits of accounts were looked at ${looksAtLimits} times.`,
    '',
    `Jobs that were given up because every one of their three workers died: ${toList(givenUp)}.`,
    '',
    `Calls whose result a client has and nobody was charged for, because their node was away from the store for longer than a lease: ${toList(unpaid)}.`,
    '',
    '## What went wrong on purpose',
    '',
    `${faults.length} faults, ${failOvers} of them changed the primary of Postgres.`,
    '',
    ...table(
      ['fault', 'times'],
      Object.entries(countBy(faults.map(({ kind }) => kind)))
        .toSorted()
        .map(([kind, n]) => [kind, `${n}`]),
    ),
    '',
    '## Answers that asked for patience',
    '',
    ...table(
      ['answer', 'times'],
      Object.entries(refused)
        .toSorted()
        .map(([word, n]) => [word, `${n}`]),
    ),
    '',
    '## Timeline',
    '',
    ...table(
      ['at', 'fault', 'of', 'for'],
      faults
        .toSorted((a, b) => a.beganAt - b.beganAt)
        .map(({ kind, target, beganAt, mendedAt, error }) => [
          `${((beganAt - startedMs) / 1000).toFixed(1)} s`,
          kind,
          target,
          mendedAt === null ? `not mended: ${error}` : `${((mendedAt - beganAt) / 1000).toFixed(1)} s`,
        ]),
    ),
  ]
  for (const { flaw, told, faults: around, logs, rows } of evidence) {
    lines.push('', `## ${flaw.kind}: ${flaw.text.slice(0, 1500)}`, '', '```')
    for (const line of told) lines.push(JSON.stringify(line))
    for (const { kind, target, beganAt, mendedAt } of around)
      lines.push(`${beganAt} to ${mendedAt}: ${kind}, ${target}`)
    lines.push(...rows, ...logs, '```')
  }
  return `${lines.join('\n')}\n`
}

function toList(ids: readonly string[]): string {
  return ids.length === 0 ? 'none' : `${ids.length} (${ids.join(', ')})`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const toLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [toLine(head), toLine(head.map(() => '---')), ...rows.map(toLine)]
}
