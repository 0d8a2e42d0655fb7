/** Runs all blocks of every page, in order, as one script in a clean checkout. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { readTiers } from '../../src/domain/accounts/limits/read-limits.ts'
import { readPrices } from '../../src/domain/credits/prices.ts'
import { startFakeComfy } from '../support/engines/fake-comfyui/fake-comfyui.ts'
import { findFreePort } from '../support/network/free-port.ts'
import { type Block, readBlocks } from './blocks.ts'
import { findInPath, openCleanCheckout, project, readPage } from './clean-checkout.ts'
import { linesNeverReached, toScript } from './page-script.ts'

const PAGES = [...globSync(['*.md', 'docs/*.md', 'docs/coming-from/*.md', 'engine/*.md'], { cwd: project })].sort()
const REPEATED = ['README.md', 'docs/router.md']
// Tools that the pages use, that are not installed with the project and have no stand-in.
const TOOLS = ['bash', 'curl', 'openssl', 'base64', 'npm', 'python3']
// Of the graphs in examples.
const CHECKPOINTS = ['sd_xl_base_1.0.safetensors']
const missing = TOOLS.filter((name) => findInPath(name) === null)
const skip = missing.length === 0 ? false : `this machine has no ${missing.join(', ')}`

const runs = ({ use }: Block) => ['shell', 'sample', 'python', 'file'].includes(use.kind)

describe('pages', { concurrency: 3 }, () => {
  for (const page of PAGES) {
    describe(page, () => {
      const blocks = readBlocks(readPage(page))
      for (const block of blocks) checkAtRest(block)
      if (blocks.some(runs)) test('runs as one script', { skip }, () => runPage(page, blocks))
    })
  }
})

test('no block starts a service that holds the terminal and goes on after it', () => {
  const pages = [...PAGES, ...globSync('deploy/*.md', { cwd: project })]
  const found = pages.flatMap((page) =>
    readBlocks(readPage(page)).flatMap((block) =>
      linesNeverReached(block).map((line) => `${page}:${block.line}: ${line}`),
    ),
  )
  assert.deepEqual(found, [])
  const [block] = readBlocks('```sh\nnpx atelier serve --port 1   # here\ncurl http://127.0.0.1:1\n```')
  assert.deepEqual(linesNeverReached(block), ['curl http://127.0.0.1:1'])
})

function checkAtRest({ use, language, text, line }: Block): void {
  if (language === 'json') test(`line ${line}: is JSON`, () => void JSON.parse(text))
  if (use.kind === 'same as') {
    test(`line ${line}: is ${use.path}`, () => {
      assert.equal(`${text}\n`, readFileSync(path.join(project, use.path), 'utf8'))
    })
  }
  if (use.kind === 'config') {
    test(`line ${line}: is a config file of the kind ${use.deployment}`, () => readAsConfig(text, use.deployment))
  }
}

async function runPage(page: string, blocks: readonly Block[]): Promise<void> {
  await using checkout = await openCleanCheckout()
  await using gpu1 = await startFakeComfy({ checkpoints: CHECKPOINTS })
  await using gpu2 = await startFakeComfy({ checkpoints: CHECKPOINTS })
  const receiver = `http://127.0.0.1:${await findFreePort()}`
  const script = toScript(page, blocks, { isRepeated: REPEATED.includes(page) })
    .replaceAll('http://127.0.0.1:8189', checkout.url)
    .replaceAll('http://127.0.0.1:9000', receiver)
    .replaceAll('http://gpu1:8188', gpu1.url.origin)
    .replaceAll('http://gpu2:8188', gpu2.url.origin)
  const { code, output } = await checkout.run(script)
  assert.equal(code, 0, output.slice(-6000))
}

function readAsConfig(text: string, kind: string): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-docs-'))
  try {
    writeFileSync(path.join(folder, 'atelier.config.json'), text)
    const env = kind === 'local' ? { ATELIER_TOKEN: 'as-the-page-says' } : {}
    const { accounts } = loadConfig({ flags: { kind }, env, cwd: folder }).config
    if (accounts !== null && accounts.tiers !== null) readTiers(accounts.tiers)
    if (accounts !== null && accounts.prices !== null) readPrices(accounts.prices)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a page with a false statement fails and names the line', { skip }, async () => {
  await using checkout = await openCleanCheckout()
  const failures: [block: string, said: RegExp][] = [
    ['false | cat', /page\.md:2: exit 1: cat/],
    ['echo one   # => two', /page\.md:2: states "two", and prints "one"/],
    ['npx atelier serve --prot 1', /did not get ready: npx atelier serve --prot 1\natelier: unknown option/],
  ]
  for (const [block, said] of failures) {
    const script = toScript('page.md', readBlocks(`\`\`\`sh\n${block}\n\`\`\``))
    const { code, output } = await checkout.run(script)
    assert.notEqual(code, 0, block)
    assert.match(output, said)
  }
  assert.throws(() => readBlocks('text\n```ini\n[x]\n```'), /line 2: nothing runs a block of ini/)
  assert.throws(() => readBlocks('```sh\nls'), /line 1: a fence that nothing closes/)
})

test('the stand-in for jq does what the pages ask of it', () => {
  const document = '{"id": "7", "files": [{"data": "x"}, {"data": "y"}]}'
  const answers: [args: string[], printed: string][] = [
    [['-r', '.id'], '7\n'],
    [['.id, .files[].data'], '"7"\n"x"\n"y"\n'],
    [['-r', '.files[1].data'], 'y\n'],
    [['-r', '.nothing'], 'null\n'],
    [['{workflow: .id}'], '{\n  "workflow": "7"\n}\n'],
  ]
  for (const [args, printed] of answers) {
    const program = path.join(project, 'test/docs/stand-ins/jq.ts')
    const { stdout } = spawnSync(process.execPath, [program, ...args], { input: document, encoding: 'utf8' })
    assert.equal(stdout, printed, args.join(' '))
  }
})
