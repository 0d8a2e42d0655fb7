/**
 * Applies every mutation of the table, one at a time, to a copy of this checkout, and runs the tests that must notice it. Writes which
 * test did into README.md beside this file. Fails when one is not noticed, or when the text to change is not there any more.
 * Arguments narrow the table down to the faults whose words contain one of them; nothing is written then.
 */
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { MUTATIONS, type Mutation } from './mutations.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const GIVE_UP_MS = 900_000
const FAILED = /^not ok \d+ - (.*)$/m

interface Verdict {
  readonly mutation: Mutation
  /** null: no test noticed it. */
  readonly caughtBy: string | null
}

/** What git knows of this checkout, with changes that are not committed. */
function copyCheckout(): string {
  const copy = mkdtempSync(path.join(tmpdir(), 'atelier-mutated-'))
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: project,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  const files = listed
    .split('\0')
    .filter((file) => file !== '' && statSync(path.join(project, file), { throwIfNoEntry: false }))
  for (const file of files) cpSync(path.join(project, file), path.join(copy, file))
  symlinkSync(path.join(project, 'node_modules'), path.join(copy, 'node_modules'))
  return copy
}

/** Returns how to undo it. */
function apply(copy: string, { in: place, find, replace }: Mutation): () => void {
  const where = path.join(copy, place)
  const files = statSync(where).isDirectory()
    ? globSync('**/*.ts', { cwd: where }).map((file) => path.join(where, file))
    : [where]
  const changed = files
    .map((file) => ({ file, text: readFileSync(file, 'utf8') }))
    .filter(({ text }) => text.includes(find))
  if (changed.length === 0) throw new Error(`${place} does not contain the text of this mutation any more: ${find}`)
  for (const { file, text } of changed)
    writeFileSync(
      file,
      text.replaceAll(find, () => replace),
    )
  return () => {
    for (const { file, text } of changed) writeFileSync(file, text)
  }
}

/** The title of the first test that fails; the others are not waited for. */
function firstFailure(copy: string, tests: readonly string[]): Promise<string | null> {
  const args = ['--test', '--test-reporter=tap', `--test-timeout=${GIVE_UP_MS}`, ...tests]
  const child = spawn(process.execPath, args, { cwd: copy, stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  return new Promise((resolve) => {
    let text = ''
    let found: string | null = null
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const title = FAILED.exec(text.replaceAll(/^ +/gm, ''))?.[1]
      if (title === undefined || found !== null) return
      found = title.replaceAll('\\#', '#')
      // With the processes that it started.
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    })
    child.on('close', (code) => resolve(found ?? (code === 0 ? null : `exit ${code}`)))
  })
}

async function judge(copy: string, mutation: Mutation): Promise<Verdict> {
  const undo = apply(copy, mutation)
  try {
    return { mutation, caughtBy: await firstFailure(copy, mutation.tests) }
  } finally {
    undo()
  }
}

/** Without it, a test that fails anyway would seem to notice everything. */
async function mustPassUnchanged(mutations: readonly Mutation[]): Promise<void> {
  const copy = copyCheckout()
  try {
    const failure = await firstFailure(copy, [...new Set(mutations.flatMap(({ tests }) => tests))])
    if (failure !== null) throw new Error(`a test fails without any mutation: ${failure}`)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

async function judgeAll(mutations: readonly Mutation[]): Promise<Verdict[]> {
  const waiting = mutations.entries()
  const verdicts: Verdict[] = []
  const work = async () => {
    const copy = copyCheckout()
    try {
      for (const [index, mutation] of waiting) {
        const verdict = await judge(copy, mutation)
        verdicts[index] = verdict
        console.log(
          `${verdict.caughtBy === null ? 'NOT NOTICED' : 'noticed'}: ${mutation.fault} <- ${verdict.caughtBy}`,
        )
      }
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, work))
  return verdicts
}

function toPage(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ mutation, caughtBy }) => {
    const cells = [mutation.area, mutation.fault, mutation.in, caughtBy ?? '**nothing**', mutation.tests.join(' ')]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return `# Faults that tests notice

\`npm run test:mutations\` writes each of these ${verdicts.length} faults of [mutations.ts](mutations.ts) into a copy of the sources, alone, and runs
the tests named with it. It wrote this page.

| area | fault | where | noticed by | in |
| --- | --- | --- | --- | --- |
${rows.join('\n')}
`
}

const words = process.argv.slice(2)
const chosen = MUTATIONS.filter(({ fault }) => words.length === 0 || words.some((word) => fault.includes(word)))
await mustPassUnchanged(chosen)
const verdicts = await judgeAll(chosen)
if (words.length === 0) writeFileSync(new URL('README.md', import.meta.url), toPage(verdicts))
const missed = verdicts.filter(({ caughtBy }) => caughtBy === null)
console.log(`${verdicts.length - missed.length} of ${verdicts.length} noticed`)
process.exitCode = missed.length === 0 && verdicts.length > 0 ? 0 : 1
