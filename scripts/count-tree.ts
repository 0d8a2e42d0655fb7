/**
 * Prints the rooms of the house with their files and lines as a table of Markdown, for docs/layout.md: `node scripts/count-tree.ts`.
 * Tests are counted apart; the total is that of `src`, `engine`, `lib` and `console`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const HOUSE = ['src', 'engine', 'lib', 'console']
const SHOWN = [...HOUSE, 'client', 'bench', 'scripts', 'deploy', 'test'].flatMap((folder) => [
  `${folder}/*.ts`,
  `${folder}/*.tsx`,
])

/** The room of a file: its folder below the top, and one level deeper in `src/adapters`, which has a folder for each port. */
function roomOf(file: string): string {
  if (file.endsWith('.test.ts') || /(^|\/)test\//.test(file)) return 'tests'
  const folders = path.dirname(file).split('/')
  if (folders[0] !== 'src' && folders[0] !== 'engine') return folders[0]
  return folders.slice(0, folders[1] === 'adapters' ? 3 : 2).join('/')
}

const files = execFileSync('git', ['ls-files', '-z', '--', ...SHOWN], { cwd: project, encoding: 'utf8' })
const rooms = new Map<string, { files: number; lines: number }>()
for (const file of files.split('\0').filter((each) => each !== '')) {
  const lines = readFileSync(path.join(project, file), 'utf8').split('\n').length - 1
  const isOfHouse = HOUSE.includes(file.split('/')[0]) && roomOf(file) !== 'tests'
  for (const room of [roomOf(file), ...(isOfHouse ? ['the house'] : [])]) {
    const known = rooms.get(room) ?? { files: 0, lines: 0 }
    rooms.set(room, { files: known.files + 1, lines: known.lines + lines })
  }
}
console.log('| room | files | lines |\n| --- | ---: | ---: |')
for (const [room, { files, lines }] of [...rooms].sort(([one], [other]) => one.localeCompare(other, 'en'))) {
  console.log(
    `| ${room.includes(' ') || room === 'tests' ? room : `\`${room}\``} | ${files} | ${lines.toLocaleString('en')} |`,
  )
}
