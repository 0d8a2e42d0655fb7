import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runAtelier } from '../support/cli/atelier.ts'
import { runInProcess } from '../support/cli/in-process.ts'

let folder: string
let empty: string
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-cli-'))
  empty = mkdtempSync(path.join(folder, 'empty-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** The same in this process, where it does not matter that the command has one of its own. */
const runHere = (args: readonly string[], options: { env?: Record<string, string>; cwd?: string } = {}) =>
  runInProcess(args, { cwd: empty, ...options })

describe('the command line', () => {
  test('knows its version and its commands', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.deepEqual(await runAtelier(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
    const help = await runAtelier(['--help'])
    assert.equal(help.code, 0)
    for (const command of ['serve', 'work', 'run', 'accounts', 'keys', 'credits', 'nodes', 'doctor', 'migrate'])
      assert.match(help.stdout, new RegExp(`^ +${command} `, 'm'))
  })

  test('loads each of its commands by the name under which the help lists it', async () => {
    const { stdout } = await runHere(['--help'])
    const listed = [...stdout.slice(stdout.indexOf('Commands:')).matchAll(/^ {2}([\w-]+)/gm)].map(
      ([, name = '']) => name,
    )
    assert.ok(listed.length > 20, listed.join(' '))
    for (const name of listed.filter((one) => one !== 'help')) {
      const { code, stdout: help } = await runHere([name, '--help'])
      assert.equal(code, 0, name)
      assert.match(help, new RegExp(`^Usage: atelier ${name}\\b`))
    }
  })

  test('refuses what it does not know with exit 2, one line and a suggestion', async () => {
    const cases: [string[], RegExp][] = [
      [['serve', '--prot', '1'], /^atelier: unknown option '--prot' \(Did you mean --port\?\)\n$/],
      [['serv'], /^atelier: unknown command 'serv' \(Did you mean serve\?\)\n$/],
      [['work', '--builds', 'on'], /^atelier: --builds is for --join; .*\n$/],
      [['work', '--join', 'http://127.0.0.1:1', '--builds', 'maybe'], /^atelier: --builds must be on or off\n$/],
      [['run'], /^atelier: missing required argument 'workflow.json\|endpoint'\n$/],
    ]
    for (const [args, message] of cases) {
      const result = await runHere(args)
      assert.equal(result.code, 2, args.join(' '))
      assert.match(result.stderr, message)
      assert.equal(result.stdout, '')
    }
  })

  test('a start with a wrong setting is exit 2 and one line that names it, whatever its source', async () => {
    writeFileSync(path.join(folder, 'atelier.config.json'), '{"retention": "soon"}')
    const cases: [string[], Record<string, string>, RegExp][] = [
      [['--retention', '7d', '--port', '99999'], {}, /^atelier: port = "99999" \(from --port\)/],
      [['--retention', '7d', '--host', ''], {}, /^atelier: host = "" \(from --host\) .* no token/],
      [['--retention', '7d'], { ATELIER_HOST: '0.0.0.0' }, /^atelier: host = "0\.0\.0\.0" \(from ATELIER_HOST\)/],
      [['--retention', '7d', '--cors-origins', '*'], {}, /^atelier: corsOrigins = "\*"/],
      [['--retention', '7d', '--cors-origins', 'https://a.example/x'], {}, /^atelier: corsOrigins = /],
      [['--retention', '7d', '--kind', 'cloud', '--token', 'x'], {}, /^atelier: token .* does not fit kind = "cloud"/],
      [[], {}, /^atelier: retention = "soon" \(from atelier\.config\.json\)/],
    ]
    for (const [args, env, message] of cases) {
      const result = await runHere(['serve', ...args], { cwd: folder, env })
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, message)
      assert.equal(result.stderr.trimEnd().split('\n').length, 1)
    }
  })

  test('a refused token is not shown', async () => {
    const result = await runAtelier(['serve', '--token', 'hush hush'])
    assert.equal(result.code, 2)
    assert.ok(!`${result.stdout}${result.stderr}`.includes('hush'))
  })
})

describe('atelier migrate', () => {
  test('says what it would do, does it once, and then has nothing to do', async () => {
    const data = path.join(folder, 'data')
    const args = ['migrate', '--data-dir', data]
    const dry = await runHere([...args, '--dry-run'])
    assert.equal(dry.code, 0, dry.stderr)
    assert.match(dry.stdout, /pending {2}0001-/)
    assert.equal(statSync(data, { throwIfNoEntry: false }), undefined, 'a dry run creates nothing')
    assert.match((await runAtelier(args)).stdout, /applied {2}0001-/)
    assert.match((await runHere(args)).stdout, /is up to date/)
  })
})

describe('atelier doctor', () => {
  test('is content with a fresh machine and says what it saw', async () => {
    const result = await runAtelier(['doctor', '--data-dir', path.join(folder, 'fresh'), '--port', '0'])
    assert.match(result.stdout, /ComfyUI page +not served; .*comfyui-frontend-package/)
    assert.equal(result.code, 0, result.stdout)
    for (const what of ['runtime', 'packages', 'pictures', 'hashing', 'store', 'disk'])
      assert.match(result.stdout, new RegExp(`^ok +${what} `, 'm'))
    assert.match(result.stdout, /all is well/)
  })

  test('finds a taken port, a folder that is a file, an open door and a wrong setting, each with its remedy', async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    try {
      const taken = await runHere(['doctor', '--data-dir', path.join(folder, 'fresh'), '--port', String(port)])
      assert.equal(taken.code, 1)
      assert.match(taken.stdout, /fail {2}address .*taken by something else\n +-> stop it/)
    } finally {
      server.close()
    }
    const file = path.join(folder, 'a-file')
    writeFileSync(file, '')
    const notFolder = await runHere(['doctor', '--data-dir', file, '--port', '0'])
    assert.equal(notFolder.code, 1)
    assert.match(notFolder.stdout, /fail {2}data folder .*is a file/)
    const reachable = ['doctor', '--data-dir', path.join(folder, 'fresh'), '--port', '0', '--host', '0.0.0.0']
    const open = await runHere([...reachable, '--allow-insecure-bind'])
    assert.match(open.stdout, /warn {2}configuration .*without a token.*\n +-> set ATELIER_TOKEN/)
    assert.match(open.stdout, /\n0 to fix, 1 to look at\n$/, 'said once')
    const shared = await runHere([...reachable, '--kind', 'cloud'])
    assert.match(shared.stdout, /warn {2}configuration .*no adminToken.*\n +-> set ATELIER_ADMIN_TOKEN/)
    assert.match(shared.stdout, /ok +access +0\.0\.0\.0, keys of accounts/)
    const wrong = await runHere(['doctor', '--port', 'x'])
    assert.equal(wrong.code, 1)
    assert.match(wrong.stdout, /fail {2}configuration {2}port = "x"/)
  })
})
