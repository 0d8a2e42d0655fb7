/**
 * `npm run bench -- --compare <commit> [--rounds n] [scenario …]`: measures this checkout and the one of the commit in turns, in one run on
 * one machine, and says what changed beyond noise, with the spread of both. A figure that says nothing about the other
 * checkout's machine or minute cannot be had by comparing two separate runs.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Comparison, compareFigures, type Run } from './kit/compare-figures.ts'
import { formatFigure, toTable } from './kit/figure.ts'

interface Wanted {
  readonly commit: string
  readonly rounds: number
  readonly scenarios: readonly string[]
}

export function compareWith({ commit, rounds, scenarios }: Wanted): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-compare-'))
  const other = path.join(folder, 'checkout')
  try {
    checkOut(commit, other)
    const runs: Record<'before' | 'after', Run[]> = { before: [], after: [] }
    for (let round = 1; round <= rounds; round += 1) {
      console.error(`round ${round} of ${rounds} …`)
      // The first of a pair finds the machine as the last pair left it, so the two take turns in being first.
      const order = round % 2 === 1 ? (['before', 'after'] as const) : (['after', 'before'] as const)
      for (const side of order) runs[side].push(measure(side === 'before' ? other : process.cwd(), scenarios))
    }
    const comparisons = compareFigures(runs.before, runs.after)
    console.log(toTable(comparisons.map(toRow), ['figure', `at ${commit}`, 'here', 'ratio', '']))
    process.exitCode = comparisons.some(({ verdict }) => verdict === 'worse') ? 1 : 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function checkOut(commit: string, folder: string): void {
  // A clone, not a work tree: nothing about it stays behind in this repository when the run is killed.
  run('git', ['clone', '--quiet', '--shared', '--no-checkout', process.cwd(), folder], process.cwd())
  run('git', ['checkout', '--quiet', commit], folder)
  const lock = (where: string) => readFileSync(path.join(where, 'package-lock.json'), 'utf8')
  // Packages are linked where they are the same; the bench of another set of packages installs its own.
  if (lock(folder) === lock(process.cwd())) symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'))
  else run('npm', ['ci', '--no-audit', '--no-fund'], folder)
}

function measure(folder: string, scenarios: readonly string[]): Run {
  const results = path.join(folder, 'bench/results/latest.json')
  rmSync(results, { force: true })
  // A missed bar ends a bench with 1, which is no fault here; a bench without results is.
  const ended = spawnSync(process.execPath, ['bench/run.ts', ...scenarios], { cwd: folder, encoding: 'utf8' })
  if (!existsSync(results)) throw new Error(`The bench of ${folder} gave no results:\n${ended.stderr}`)
  return (JSON.parse(readFileSync(results, 'utf8')) as { figures: Run }).figures
}

function run(command: string, args: readonly string[], cwd: string): void {
  const ended = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (ended.status !== 0) throw new Error(`${command} ${args.join(' ')}: ${ended.stderr || ended.error?.message}`)
}

function toRow({ name, unit, before, after, ratio, verdict }: Comparison): string[] {
  const spread = ({ median, least, most }: Comparison['before']) =>
    `${formatFigure(median, unit)} (${formatFigure(least, unit)} to ${formatFigure(most, unit)})`
  return [name, spread(before), spread(after), ratio.toFixed(2), verdict]
}
