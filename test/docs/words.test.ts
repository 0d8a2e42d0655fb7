/** What pages say outside of their code blocks is true: links lead somewhere, and files, scripts, commands and flags exist. */
import assert from 'node:assert/strict'
import { existsSync, globSync } from 'node:fs'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { main } from '../../src/cli/main.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { project, readPage } from './clean-checkout.ts'

const FOLDERS_OF_PAGES = ['.', 'deploy', 'docs', 'docs/coming-from', 'docs/decisions', 'engine']
const PAGES = globSync(
  FOLDERS_OF_PAGES.map((folder) => path.join(folder, '*.md')),
  { cwd: project },
).sort()
// Decisions and the changelog describe the past.
const CURRENT = PAGES.filter((page) => !page.includes('decisions') && page !== 'CHANGELOG.md')
const FENCED = /^ *(`{3,})[\s\S]*?^ *\1\s*$/gm

test('every link to a file or to a heading leads there', () => {
  const broken = PAGES.flatMap((page) => {
    const links = readPage(page)
      .replaceAll(FENCED, '')
      .matchAll(/\]\(([^)\s]+)\)/g)
    return [...links]
      .map(([, target]) => target)
      .filter((target) => !leadsSomewhere(page, target))
      .map((to) => `${page}: ${to}`)
  })
  assert.deepEqual(broken, [])
})

function leadsSomewhere(page: string, target: string): boolean {
  if (/^https?:/.test(target)) return true
  const [file, anchor] = target.split('#')
  const found = file === '' ? page : path.join(path.dirname(page), file)
  if (!existsSync(path.join(project, found))) return false
  return anchor === undefined || anchorsOf(readPage(found)).includes(anchor)
}

function anchorsOf(markdown: string): string[] {
  const headings = markdown.replaceAll(FENCED, '').matchAll(/^#+ (.+)$/gm)
  return [...headings].map(([, text]) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

// Folders of the project, those of `src` that pages name without it, and what the benches write.
const FOLDERS = /^(bench|docs|engine|examples|exports|lib|models|scripts|spec|src|test)\//
const SOURCE_FOLDERS = /^(adapters|cli|compose|config|domain|surfaces)\//
const MADE_AT_RUN_TIME = ['bench/results']

test('every decision is in the index once, by its number, which no other has', () => {
  const files = globSync('docs/decisions/[0-9]*.md', { cwd: project }).map((file) => path.basename(file))
  const listed = [...readPage('docs/decisions/README.md').matchAll(/^\| \[(\d+)\]\(([^)]+)\)/gm)]
  assert.deepEqual(listed.map(([, , file]) => file).sort(), files.sort())
  assert.equal(new Set(listed.map(([, number]) => number)).size, listed.length, 'two decisions have one number')
  for (const [, number, file] of listed) {
    assert.equal(Number(file.slice(0, 4)), Number(number), file)
    assert.match(readPage(path.join('docs/decisions', file)), new RegExp(`^# ${number}\\. |^# 0*${number} · `), file)
  }
})

test('every file and folder of the project that a page names exists', () => {
  const missing = CURRENT.flatMap((page) =>
    namedPaths(readPage(page).replaceAll(FENCED, ''))
      .filter((named) => !MADE_AT_RUN_TIME.some((folder) => named.startsWith(folder)))
      .filter((named) => globSync(named, { cwd: project }).length === 0)
      .map((named) => `${page}: ${named}`),
  )
  assert.deepEqual(missing, [])
})

test('the figures in README are those of the page about performance', () => {
  const tableOf = (page: string, heading: string) =>
    readPage(page)
      .split(`## ${heading}\n`)[1]
      .trimStart()
      .split('\n\n')
      .find((part) => part.startsWith('|'))
  assert.match(String(tableOf('README.md', 'Measured')), /^\| what you feel/)
  assert.equal(tableOf('README.md', 'Measured'), tableOf('docs/performance.md', 'What you feel'))
})

test('a path that does not exist is found, alone and inside of a command', () => {
  assert.deepEqual(namedPaths('see `src/gone.ts`, `node scripts/gone.ts --all` and `test/gone`; not `/docs/admin`'), [
    'src/gone.ts',
    'scripts/gone.ts',
    'test/gone',
  ])
})

/** Paths in backticks, from the root of the project, and names of source files anywhere in it. */
function namedPaths(markdown: string): string[] {
  return [...markdown.matchAll(/`([^`\n]+)`/g)]
    .flatMap(([, code]) => code.split(/[\s,()"']+/))
    .map((word) => (SOURCE_FOLDERS.test(word) ? `src/${word}` : word))
    .filter((word) => FOLDERS.test(word) || /^[\w-]+\.ts$/.test(word))
    .map((word) => (word.includes('/') ? word.replace(/\/$/, '') : `{bench,engine,lib,scripts,src,test}/**/${word}`))
    .map((word) => word.replaceAll(/<[^>]+>|…/g, '*'))
}

test('every script of npm that a page names exists, in blocks that nobody runs too', () => {
  const { scripts } = JSON.parse(readPage('package.json')) as { readonly scripts: Readonly<Record<string, string>> }
  const unknown = CURRENT.flatMap((page) =>
    [...readPage(page).matchAll(/npm run ([\w:]+)/g)]
      .filter(([, name]) => scripts[name] === undefined)
      .map(([text]) => `${page}: ${text}`),
  )
  assert.deepEqual(unknown, [])
})

interface Named {
  readonly page: string
  readonly words: readonly string[]
  readonly flags: readonly string[]
}

/** `npx atelier keys rotate <id> --overlap 1h` in a sentence or a table. */
function namedCommands(): Named[] {
  return CURRENT.flatMap((page) =>
    [
      ...readPage(page)
        .replaceAll(FENCED, '')
        .matchAll(/`npx atelier ([^`]+)`/g),
    ].map(([, text]) => ({
      page,
      words: (/^[a-z]+( [a-z]+(?=$| ))*/.exec(text)?.[0] ?? '').split(' ').slice(0, 2),
      flags: text.match(/(?<=^| |\[)--[a-z-]+/g) ?? [],
    })),
  )
}

describe('commands that are named', () => {
  const named = namedCommands()
  const byWords = Map.groupBy(named, ({ words }) => words.join(' '))
  for (const [words, mentions] of byWords) {
    test(`npx atelier ${words}`, async () => {
      const help = await helpOf(words.split(' '))
      for (const { page, flags } of mentions) {
        for (const flag of flags) assert.match(help, new RegExp(`${flag}\\b`), `${page}: ${words} ${flag}`)
      }
    })
  }
})

/** In this process: a new one for each command would take most of the time. */
async function helpOf(words: readonly string[]): Promise<string> {
  const output = new PassThrough()
  const terminal: Terminal = {
    program: '',
    args: [...words, '--help'],
    env: {},
    cwd: project,
    stdin: new PassThrough(),
    stdout: output as unknown as Terminal['stdout'],
    stderr: output as unknown as Terminal['stderr'],
    onSignal: () => () => {},
    onHangup: () => () => {},
    exitNow: () => assert.fail('help ends by itself'),
  }
  const code = await main(terminal)
  const text = String(output.read() ?? '')
  assert.equal(code, 0, text)
  return text
}
