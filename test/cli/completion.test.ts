/** Completion in the shells themselves, against a whole service. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { PROGRAM } from '../support/app/program.ts'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { call } from '../support/clients/call.ts'
import { card } from '../support/endpoints/card.ts'
import { findFreePort } from '../support/network/free-port.ts'
import { startHttpFake } from '../support/providers/http-fake.ts'

const KEY = 'the-key-of-this-test'
const exec = promisify(execFile)

interface Shell {
  readonly name: 'bash' | 'zsh' | 'fish'
  /** Prints what can stand at the end of the line, one word on a line, as the shell gets it. */
  readonly ask: string
}

// The line is in LINE. Where a shell completes only for somebody at a terminal, its completion function is called as it would be.
const SHELLS: readonly Shell[] = [
  {
    name: 'bash',
    ask: `source "$SCRIPT"
complete -p atelier >/dev/null
COMP_LINE=$LINE COMP_POINT=\${#LINE} COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
COMP_WORDS=($LINE)
[[ $LINE == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_atelier
[ "\${#COMPREPLY[@]}" -eq 0 ] || printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  {
    name: 'zsh',
    ask: `compdef() { : }
compadd() { print -rl -- "\${found[@]}" }
_files() { print -rl -- *(N) }
source $SCRIPT
words=(\${(z)LINE}); [[ $LINE == *' ' ]] && words+=('')
CURRENT=\${#words}
_atelier
true`,
  },
  { name: 'fish', ask: 'source $SCRIPT; complete -C "$LINE" | string replace -r "\\t.*" ""; true' },
]

describe('completion', () => {
  let service: TestApp
  let folder: string
  let env: Record<string, string>
  let job: string
  let asset: string
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'atelier-completion-'))
    await writeFile(path.join(folder, 'flow.json'), '{}')
    const bin = path.join(folder, 'bin')
    await exec('mkdir', [bin])
    await writeFile(path.join(bin, 'atelier'), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`)
    await chmod(path.join(bin, 'atelier'), 0o755)
    service = await startTestApp({ settings: { token: KEY } })
    env = {
      ...{ PATH: `${bin}:${process.env['PATH']}`, HOME: folder, TERM: 'dumb' },
      ...{ ATELIER_BASE_URL: service.url, ATELIER_TOKEN: KEY },
    }
    const inputs = {
      headline: { description: 'What the card says.', required: true },
      font_size: { from: '2.font_size' },
      align: { from: '2.align' },
      tone: { from: '2.color', choices: ['#ffffff', '#ff0000'] },
      outline: { from: '2.outline' },
    }
    for (const name of ['card', 'card-two', 'poster'])
      await send('POST', '', { name, file: card('x'), declaration: { only: true, inputs } })
    await send('PUT', '/card/aliases/stable', { version: 1 })
    job = (await send('POST', '/card/runs', { inputs: { headline: 'x' } })).json.id
    const { stdout } = await exec('atelier', ['assets', 'upload', 'flow.json'], { env, cwd: folder })
    asset = stdout.trim()
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  async function send(method: string, where: string, body: object) {
    const headers = { authorization: `Bearer ${KEY}` }
    const made = await call(service.url, `/api/v2/endpoints${where}`, { method, body: JSON.stringify(body), headers })
    assert.ok(made.status < 300, made.text)
    return made
  }

  for (const { name, ask } of SHELLS) {
    const isThere = spawnSync(name, ['--version']).status === 0
    describe(`in ${name}`, { skip: isThere ? false : `this machine has no ${name}`, concurrency: 2 }, () => {
      before(async () => {
        const { stdout } = await exec('atelier', ['completion', name], { env })
        await writeFile(path.join(folder, name), stdout)
      })
      async function words(line: string, more: Record<string, string> = {}): Promise<string[]> {
        const plain = name === 'bash' ? ['--norc'] : name === 'zsh' ? ['-f'] : ['--no-config']
        const options = { cwd: folder, env: { ...env, ...more, LINE: line, SCRIPT: path.join(folder, name) } }
        const { stdout, stderr } = await exec(name, [...plain, '-c', ask], options)
        assert.equal(stderr, '', 'nothing is said beside the words')
        return stdout.split('\n').filter((word) => word !== '')
      }

      /** A service that does not answer in time, on a busy machine, is asked again: nothing is said of it then. */
      async function soon(check: () => Promise<void>): Promise<void> {
        for (let left = 20; ; left--) {
          try {
            return await check()
          } catch (error) {
            if (left === 0) throw error
          }
        }
      }

      test('knows the commands and their flags, as they are', async () => {
        assert.deepEqual((await words('atelier end')).sort(), ['endpoints'])
        assert.deepEqual(
          await words('atelier completion '),
          ['bash', 'zsh', 'fish'].toSorted((a, b) => (name === 'fish' ? (a < b ? -1 : 1) : 0)),
        )
        assert.ok((await words('atelier endpoints ')).includes('rollback'))
        assert.ok((await words('atelier endpoints publish card flow.json --bre')).includes('--breaking'))
        assert.deepEqual((await words('atelier endpoints client card --lang ')).sort(), ['python', 'ts'])
        assert.ok(
          (await words('atelier serve --engine-')).includes('--engine-memory'),
          'also what only the long help has',
        )
      })

      test('knows endpoints, their versions, and files where files can stand', () =>
        soon(async () => {
          assert.deepEqual((await words('atelier endpoints show card')).sort(), ['card', 'card-two'])
          const run = await words('atelier run ')
          for (const each of ['card', 'card-two', 'poster', 'flow.json']) assert.ok(run.includes(each), run.join())
          const versions = await words('atelier run card --version ')
          assert.deepEqual(versions.toSorted(), ['1', 'latest', 'stable'])
          // Bash takes the word to begin behind the sign.
          assert.deepEqual(await words('atelier run card@st'), [name === 'bash' ? 'stable' : 'card@stable'])
          assert.deepEqual(await words('atelier endpoints diff card 1 la'), ['latest'])
        }))

      test('knows the ids of jobs and assets', () =>
        soon(async () => {
          assert.ok((await words('atelier jobs watch ')).includes(job))
          assert.deepEqual(await words('atelier assets download '), [asset])
        }))

      test('has flags of the inputs, and the choices of each', () =>
        soon(async () => {
          const flags = await words('atelier run card --headline x --')
          for (const each of ['--font-size', '--align', '--outline', '--no-outline', '--timeout'])
            assert.ok(flags.includes(each), flags.join())
          assert.ok(!flags.includes('--headline'))
          assert.deepEqual((await words('atelier run card --align ')).sort(), ['center', 'left', 'right'])
          assert.deepEqual(await words('atelier run card --align=le'), [name === 'bash' ? 'left' : '--align=left'])
          assert.deepEqual(await words('atelier run card -i align=ri'), [name === 'bash' ? 'right' : 'align=right'])
          // As it has to be typed: what a shell would read as something else is escaped.
          const tones = await words('atelier run card --tone ')
          assert.deepEqual(tones.toSorted(), name === 'bash' ? ['\\#ff0000', '\\#ffffff'] : ['#ff0000', '#ffffff'])
        }))

      test('says nothing when the service refuses, is not there, or does not answer', async () => {
        const nowhere = `http://127.0.0.1:${await findFreePort()}`
        assert.deepEqual(await words('atelier endpoints show c', { ATELIER_TOKEN: 'wrong' }), [])
        assert.deepEqual(await words('atelier endpoints show c', { ATELIER_BASE_URL: nowhere }), [])
        assert.deepEqual(await words(`atelier endpoints show --base-url ${nowhere} c`), [])
        assert.deepEqual(await words('atelier endpoints show c', { ATELIER_BASE_URL: 'no address' }), [])
        assert.deepEqual(await words('atelier nobody knows '), [])
        await using silent = await startHttpFake(() => {})
        assert.deepEqual(await words('atelier endpoints show c', { ATELIER_BASE_URL: silent.url }), [])
      })
    })
  }
})
