/** The program in few files, built by the real script in a small checkout. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../scripts/built-parts.js'
import { createPartNames } from '../../scripts/program-parts.ts'
import { waitUntil } from '../support/wait-until.ts'

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))
// Addresses that only mean something over there are put in when the files are written.
const BIN = `import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
const data: string = readFileSync(new URL('../data.txt', import.meta.url), 'utf8')
const worker = new Worker(new URL('./thread.ts', HERE))
const [answer] = await new Promise<string[]>((resolve) => worker.once('message', (...all) => resolve(all)))
console.log(JSON.stringify({ data, answer, own: fileURLToPath(import.meta.url) }))
`
const THREAD = `import { parentPort } from 'node:worker_threads'
import { word } from WORD
parentPort?.postMessage(word + ' from ' + import.meta.url.split('/').at(-1))
`

describe('the build of the program', () => {
  let checkout: string
  const write = (file: string, text: string) => writeFileSync(path.join(checkout, file), text)
  const run = (file: string) => spawnSync(process.execPath, [file], { cwd: checkout, encoding: 'utf8' })
  const build = () => {
    const { status, stderr } = run(path.join(checkout, 'scripts/build-program.ts'))
    assert.equal(status, 0, stderr)
  }

  before(() => {
    checkout = mkdtempSync(path.join(tmpdir(), 'atelier-build-'))
    for (const folder of ['src-elsewhere', 'engine', 'lib']) mkdirSync(path.join(checkout, folder))
    symlinkSync(path.join(checkout, 'src-elsewhere'), path.join(checkout, 'src'))
    cpSync(path.join(PROJECT, 'scripts'), path.join(checkout, 'scripts'), { recursive: true })
    symlinkSync(path.join(PROJECT, 'node_modules'), path.join(checkout, 'node_modules'))
    write('package.json', '{ "type": "module" }')
    write('package-lock.json', '{}')
    write('data.txt', 'beside the sources')
    write('src/bin.ts', BIN.replace('HERE', 'import.meta.url'))
    write('src/thread.ts', THREAD.replace('WORD', "'../lib/word.ts'"))
    write('lib/word.ts', "export const word: string = 'hello'\n")
  })
  after(() => rmSync(checkout, { recursive: true, force: true }))

  test('is what starts, finds data where the sources do, also where folders are links, and starts its threads from itself', () => {
    assert.equal(findProgram(checkout), path.join(checkout, 'src/bin.ts'))
    build()
    const program = findProgram(checkout)
    assert.match(program, /build\/[0-9a-f]{32}\/bin\.js$/)
    assert.deepEqual(JSON.parse(run(program).stdout), {
      data: 'beside the sources',
      answer: 'hello from thread.ts',
      own: program,
    })
  })

  test('stands back for sources that have changed, and stays for a service that runs from it', () => {
    build()
    const before = findProgram(checkout)
    write('lib/word.ts', "export const word: string = 'good day'\n")
    assert.equal(findProgram(checkout), path.join(checkout, 'src/bin.ts'))
    build()
    assert.match(run(findProgram(checkout)).stdout, /good day/)
    assert.ok(existsSync(before))
  })

  test('stands back for a change of a single letter', () => {
    build()
    assert.notEqual(findProgram(checkout), path.join(checkout, 'src/bin.ts'))
    write('lib/word.ts', "export const word: string = 'good dax'\n")
    assert.equal(findProgram(checkout), path.join(checkout, 'src/bin.ts'))
  })

  test('knows sources that have not changed without reading them, and notices when they have', async () => {
    build()
    const program = findProgram(checkout)
    const note = path.join(checkout, 'build/known.json')
    // It may be of the sources of an earlier test.
    rmSync(note, { force: true })
    // Files that were written a moment ago are read: they could be written again at the same instant.
    await waitUntil(() => findProgram(checkout) === program && existsSync(note))
    const { looks } = JSON.parse(readFileSync(note, 'utf8')) as { looks: string }
    writeFileSync(note, JSON.stringify({ looks, digest: 'of another build' }))
    assert.equal(findProgram(checkout), path.join(checkout, 'src/bin.ts'), 'the note is believed')
    write('lib/word.ts', "export const word: string = 'good day'\n")
    build()
    assert.match(run(findProgram(checkout)).stdout, /good day/)
  })

  test('is not made of tests', () => {
    build()
    const program = findProgram(checkout)
    write('lib/word.test.ts', 'throw new Error()\n')
    assert.equal(findProgram(checkout), program)
  })
})

describe('the parts of the build', () => {
  test('are made after modules that exist', () => {
    const asked: string[] = []
    const nameOf = createPartNames((file) => path.join(PROJECT, file))
    nameOf('any', {
      getModuleInfo(id) {
        asked.push(id)
        return null
      },
    })
    assert.ok(asked.length > 10)
    assert.deepEqual(
      asked.filter((id) => !existsSync(id)),
      [],
    )
  })

  test('are apart where a thread needs less than the service, and left to the bundler where no start needs them', () => {
    const imports: Readonly<Record<string, readonly string[]>> = {
      'src/app.ts': ['wide.ts', 'rows.ts', 'log.ts'],
      'src/cli/main.ts': ['log.ts'],
      'engine/threads/compute-thread.ts': ['rows.ts', 'nodes.ts'],
      'engine/bands/band-thread.ts': ['rows.ts'],
    }
    const nameOf = createPartNames((file) => file)
    const graph = { getModuleInfo: (id: string) => ({ importedIds: imports[id] ?? [] }) }
    assert.deepEqual(
      ['wide.ts', 'rows.ts', 'log.ts', 'nodes.ts'].map((id) => nameOf(id, graph)),
      ['service', 'service+engine+bands', 'command', null],
    )
  })
})
