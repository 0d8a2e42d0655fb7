import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findOldNode } from '../support/old-node.ts'

const SCRIPTS = fileURLToPath(new URL('../../scripts', import.meta.url))

let folder: string
let checkout: string

/** A project of one small package that lies beside it: `npm ci` then needs no network. */
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-setup-'))
  checkout = path.join(folder, 'checkout')
  mkdirSync(path.join(folder, 'tiny'), { recursive: true })
  mkdirSync(checkout)
  writeFileSync(path.join(folder, 'tiny', 'package.json'), '{"name":"tiny","version":"1.0.0"}')
  npm(['pack', '--silent', '--pack-destination', checkout], path.join(folder, 'tiny'))
  cpSync(SCRIPTS, path.join(checkout, 'scripts'), { recursive: true })
  writeFileSync(
    path.join(checkout, 'package.json'),
    '{"name":"x","version":"1.0.0","type":"module","dependencies":{"tiny":"file:tiny-1.0.0.tgz"}}',
  )
  npm(['install', '--package-lock-only', '--offline', '--silent'], checkout)
})
after(() => rmSync(folder, { recursive: true, force: true }))

function npm(args: string[], cwd: string): void {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
}

interface Ended {
  readonly code: number | null
  readonly output: string
}

function runScript(script: string, { node = process.execPath, args = [] as string[], env = {} } = {}): Promise<Ended> {
  const child = spawn(node, [path.join(checkout, 'scripts', script), ...args], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

describe('scripts/setup.js', () => {
  test('two at once install once, say so, and a third has nothing to do', async () => {
    const [first, second] = await Promise.all([runScript('setup.js'), runScript('setup.js')])
    assert.deepEqual([first.code, second.code], [0, 0], first.output + second.output)
    const outputs = [first.output, second.output]
    assert.equal(outputs.filter((output) => /packages are missing; running `npm ci`/.test(output)).length, 1)
    assert.equal(outputs.filter((output) => /Set up in [\d.]+ s\./.test(output)).length, 1)
    assert.ok(existsSync(path.join(checkout, 'node_modules/tiny/package.json')))
    assert.deepEqual(await runScript('setup.js'), { code: 0, output: '' })
  })

  test('a lockfile that changed is installed again', async () => {
    const lockfile = path.join(checkout, 'package-lock.json')
    const installed = path.join(checkout, 'node_modules/.package-lock.json')
    writeFileSync(
      installed,
      readFileSync(installed, 'utf8')
        .replace('"1.0.0"', '"0.9.0"')
        .replace(/sha512-./, 'sha512-X'),
    )
    writeFileSync(lockfile, `${readFileSync(lockfile, 'utf8')}\n`)
    const again = await runScript('setup.js')
    assert.equal(again.code, 0, again.output)
    assert.match(again.output, /do not match package-lock\.json/)
    assert.deepEqual(await runScript('setup.js'), { code: 0, output: '' })
  })

  test('a failing install is told and is exit 1', async () => {
    const manifest = path.join(checkout, 'package.json')
    const text = readFileSync(manifest, 'utf8')
    rmSync(path.join(checkout, 'node_modules'), { recursive: true })
    try {
      writeFileSync(manifest, text.replace('}}', ',"absent":"file:absent.tgz"}}'))
      const failed = await runScript('setup.js')
      assert.equal(failed.code, 1)
      assert.match(failed.output, /Setting up failed: `npm ci` ended with exit code \d+/)
    } finally {
      writeFileSync(manifest, text)
    }
    assert.equal((await runScript('setup.js')).code, 0, 'and the next try works')
  })

  test('without a Node that is new enough it says what to do', async (t) => {
    const old = findOldNode()
    if (old === null) return t.skip('this machine has no Node older than 24 to try it with')
    const result = await runScript('setup.js', { node: old, env: { PATH: path.dirname(old) } })
    assert.equal(result.code, 1)
    assert.match(result.output, /needs Node 24 or newer.*\nInstall Node 24 /)
  })
})

describe('scripts/atelier.js', () => {
  test('runs src/bin.ts, passes arguments on and ends as it ended', async () => {
    mkdirSync(path.join(checkout, 'src'), { recursive: true })
    writeFileSync(path.join(checkout, 'src/bin.ts'), 'console.log(process.argv.slice(2).join("+")); process.exit(7)\n')
    assert.deepEqual(await runScript('atelier.js', { args: ['run', 'x'] }), { code: 7, output: 'run+x\n' })
  })

  test('hands signals through', async () => {
    const program = "process.on('SIGTERM', () => process.exit(9)); setInterval(() => {}, 1000); console.log('ready')\n"
    writeFileSync(path.join(checkout, 'src/bin.ts'), program)
    const child = spawn(process.execPath, [path.join(checkout, 'scripts/atelier.js')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.stdout.once('data', () => child.kill('SIGTERM'))
    assert.equal(await new Promise((resolve) => child.on('close', resolve)), 9)
  })

  test('`npx atelier` prints no warning about a Node version that works', async (t) => {
    const old = findOldNode()
    const npx = old === null ? null : path.join(path.dirname(old), 'npx')
    if (npx === null || !existsSync(npx))
      return t.skip('this machine has no npx of a Node older than 24 to try it with')
    const manifest = JSON.parse(readFileSync(path.join(SCRIPTS, '../package.json'), 'utf8')) as Record<string, unknown>
    const local = path.join(folder, 'local')
    mkdirSync(path.join(local, 'node_modules'), { recursive: true })
    mkdirSync(path.join(local, 'src'))
    cpSync(SCRIPTS, path.join(local, 'scripts'), { recursive: true })
    writeFileSync(path.join(local, 'src/bin.ts'), "console.log('here')\n")
    const { name, version, type, engines, bin } = manifest
    writeFileSync(path.join(local, 'package.json'), JSON.stringify({ name, version, type, engines, bin }))
    const { stdout, stderr } = spawnSync(npx, ['--offline', 'atelier'], {
      cwd: local,
      encoding: 'utf8',
      // The command looks for a newer Node behind the old one.
      env: {
        PATH: `${path.dirname(old as string)}:${path.dirname(process.execPath)}:${process.env['PATH']}`,
        HOME: folder,
        npm_config_cache: path.join(folder, 'cache'),
      },
    })
    assert.doesNotMatch(stderr, /EBADENGINE/)
    // Whether it goes on to run depends on which of both is called `node` here.
    assert.match(stdout + stderr, /^here$|needs Node 24 or newer/m)
  })

  test('says what is missing when it is not set up', async () => {
    rmSync(path.join(checkout, 'node_modules'), { recursive: true })
    const result = await runScript('atelier.js')
    assert.equal(result.code, 1)
    assert.match(result.output, /packages are not installed\. Run `npm ci` in /)
  })
})
