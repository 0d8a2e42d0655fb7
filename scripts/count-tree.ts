/**
 * Prints the folders with their files and lines of TypeScript as a table of Markdown, one pair of columns for each commit that is named
 * (`HEAD` if none is). Tests are counted apart. docs/layout.md is made with it.
 */
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

interface Count {
  files: number
  lines: number
}

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const HOUSES = ['lib', 'engine', 'src', 'console', 'bench', 'scripts', 'deploy', 'test']
const SHOWN_DEPTH = 2
const isTest = (file: string) => file.endsWith('.test.ts') || /(^|\/)test\//.test(file)

/** The folders in which a file is counted: its house and, of the larger houses, the rooms below. */
function roomsOf(file: string): string[] {
  const folders = path.dirname(file).split('/')
  const [house = ''] = folders
  if (isTest(file)) return ['tests']
  const isLarge = house === 'src' || house === 'engine' || house === 'console'
  const depth = isLarge ? Math.min(folders.length, SHOWN_DEPTH + (folders[1] === 'adapters' ? 1 : 0)) : 1
  return Array.from({ length: depth }, (_, index) => folders.slice(0, index + 1).join('/'))
}

function count(commit: string): Map<string, Count> {
  // A star of git matches slashes, too.
  const args = ['grep', '-c', '', commit, '--', ...HOUSES.flatMap((house) => [`${house}/*.ts`, `${house}/*.tsx`])]
  const listed = execFileSync('git', args, { cwd: project, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  const rooms = new Map<string, Count>()
  for (const [, file = '', lines = ''] of listed.matchAll(/^[^:]+:(.+):(\d+)$/gm)) {
    for (const room of [...roomsOf(file), 'all']) {
      const known = rooms.get(room) ?? { files: 0, lines: 0 }
      rooms.set(room, { files: known.files + 1, lines: known.lines + Number(lines) })
    }
  }
  return rooms
}

const commits = process.argv.length > 2 ? process.argv.slice(2) : ['HEAD']
const counts = commits.map(count)
const rooms = [...new Set(counts.flatMap((each) => [...each.keys()]))].sort()
const ordered = [...rooms.filter((room) => room !== 'all' && room !== 'tests'), 'tests', 'all']
console.log(`| folder | ${commits.map((commit) => `${commit}: files | lines`).join(' | ')} |`)
console.log(`| --- |${' ---: | ---: |'.repeat(commits.length)}`)
for (const room of ordered) {
  const cells = counts.map((each) => {
    const { files, lines } = each.get(room) ?? { files: 0, lines: 0 }
    return files === 0 ? ' | ' : `${files} | ${lines.toLocaleString('en')}`
  })
  const name = counts.at(-1)?.has(room) ? `\`${room}\`` : `${room.replaceAll('/', ' / ')} (gone)`
  console.log(`| ${name} | ${cells.join(' | ')} |`)
}
