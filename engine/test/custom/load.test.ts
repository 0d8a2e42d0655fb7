/** Folders that cannot be loaded: the engine does not open, and one line says which file and why. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openTestEngine } from '../support/harness.ts'

let root: string
before(() => {
  root = mkdtempSync(path.join(tmpdir(), 'atelier-load-'))
})
after(() => rmSync(root, { recursive: true, force: true }))

function write(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(path.join(root, 'nodes-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text)
  return folder
}

async function refusal(folder: string, loadTimeoutMs = 60_000): Promise<string> {
  try {
    await using _engine = await openTestEngine({ customNodes: { folders: [folder], timeoutMs: 1000, loadTimeoutMs } })
  } catch (error) {
    assert.equal((error as Error).name, 'NodeModuleError')
    assert.ok(!(error as Error).message.includes('\n'), 'one line')
    return (error as Error).message.replaceAll(folder, '~')
  }
  assert.fail('the folder was accepted')
}

const node = (classType: string) =>
  `import { defineNode } from 'atelier/nodes'
   export const node = defineNode({ classType: '${classType}', outputs: { n: 'int' }, run: () => ({ n: 1 }) })`

describe('a nodes folder that cannot be loaded', () => {
  const cases: Readonly<Record<string, readonly [text: string, message: RegExp]>> = {
    'a module with a syntax error': ['export const = 1', /^the node module ~\/bad\.ts does not load: SyntaxError: /],
    'a module with syntax that has no types to strip': [
      'enum Colour { red }',
      /^the node module ~\/bad\.ts does not load: SyntaxError: .*enum/,
    ],
    'a module that throws': [
      'throw new Error("no\\nluck")',
      /^the node module ~\/bad\.ts does not load: Error: no luck$/,
    ],
    'a module that throws no error': ['throw Object.create(null)', /it threw something that has no text$/],
    'a module that misses a package': ['import "no-such-package"', /Cannot find package 'no-such-package'/],
    'a module without a node': [
      'export const five = 5',
      /bad\.ts does not load: Error: it exports no node: export what/,
    ],
    'a module that ends the process': ['process.exit(0)', /bad\.ts does not load: it ended the thread that loads it$/],
    'a module that throws later': [
      'setTimeout(() => { throw new Error("late") }); await new Promise(() => {})',
      /bad\.ts does not load: late$/,
    ],
    'a node with a mistake in its declaration': [
      node('Fine').replace("outputs: { n: 'int' }", "outputs: { n: 'integer' }"),
      /bad\.ts does not load: Error: node Fine: output n: give one of image, mask/,
    ],
    'a node of a built-in name': [
      node('SaveImage'),
      /^the node module ~\/bad\.ts defines SaveImage, which is a built-in node; choose another classType$/,
    ],
    'a node of another module’s name': [
      node('Good'),
      /^the node Good is defined in ~\/bad\.ts and in ~\/good\.ts; rename one of them$/,
    ],
  }
  for (const [name, [text, message]] of Object.entries(cases)) {
    test(`${name} stops the start`, async () => {
      assert.match(await refusal(write({ 'bad.ts': text, 'good.ts': node('Good') })), message)
    })
  }

  test('a module that never finishes stops the start', async () => {
    const folder = write({ 'endless.ts': 'for (;;) {}' })
    assert.match(
      await refusal(folder, 3000),
      /^the node module ~\/endless\.ts does not load: it did not finish within 3 s$/,
    )
  })

  test('a folder that is not there, or no folder, stops the start', async () => {
    assert.match(
      await refusal(path.join(root, 'nowhere')),
      /^the nodes folder ~ cannot be read \(ENOENT\); correct --nodes/,
    )
    const file = path.join(write({ 'file.ts': '' }), 'file.ts')
    assert.match(await refusal(file), /cannot be read \(ENOTDIR\)/)
  })

  test('an empty folder is no mistake', async () => {
    const folder = write({})
    mkdirSync(path.join(folder, 'sub.ts'))
    await using engine = await openTestEngine({ customNodes: { folders: [folder], timeoutMs: 1000 } })
    assert.equal(engine.engine.catalog().find('Good'), null)
  })
})
