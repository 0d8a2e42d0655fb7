/** The program in few files, built by the real script in a small checkout. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../scripts/built-parts.js'

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

  test('is not made of tests', () => {
    build()
    const program = findProgram(checkout)
    write('lib/word.test.ts', 'throw new Error()\n')
    assert.equal(findProgram(checkout), program)
  })
})
