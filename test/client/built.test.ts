/** What the clients are made of, whoever they are given to. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { APIS, MAIN_DOOR } from '../../client/generate/apis.ts'
import { type Document, readOperations } from '../../lib/openapi/operations.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const dist = path.join(project, 'client/dist')
const PYTHON = process.env['ATELIER_TEST_PYTHON']
const read = (name: string) => readFileSync(path.join(dist, name), 'utf8')

const documentOf = (source: string) => JSON.parse(readFileSync(path.join(project, 'spec', source), 'utf8')) as Document

async function bundle(text: string): Promise<string> {
  const bundled = await rolldown({
    input: 'program',
    cwd: project,
    platform: 'browser',
    plugins: [
      {
        name: 'program',
        resolveId: (id) => (id === 'program' ? path.join(project, 'program.js') : null),
        load: (id) => (id === path.join(project, 'program.js') ? text : null),
      },
    ],
  })
  const { output } = await bundled.generate({ minify: true })
  await bundled.close()
  return output[0].code
}

test('every operation of the specification is a function of its module, and a method in Python', async () => {
  const python = read('python/atelier_client.py')
  for (const { source, door } of APIS) {
    const names = readOperations(documentOf(source)).map(({ name }) => name)
    assert.ok(names.length > 0, source)
    const module = (await import(door === MAIN_DOOR ? 'atelier/client' : `atelier/client/${door}`)) as object
    assert.deepEqual(
      names.filter((name) => !(name in module)),
      [],
    )
    const methods = names.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
    assert.deepEqual(
      methods.filter((name) => !python.includes(`    def ${name}(self`)),
      [],
    )
  }
})

test('a program has of the client what it calls, and nothing of Node', async () => {
  const whole = await bundle("export * from 'atelier/client'")
  const one = await bundle(
    "import { connect, getBatch } from 'atelier/client'\nconsole.log(getBatch(connect(), { id: 'x' }))",
  )
  assert.match(one, /batches/)
  assert.doesNotMatch(one, /webhook|event-stream|schedules/)
  assert.ok(one.length < 6_000, `${one.length} bytes`)
  assert.ok(one.length * 4 < whole.length, `${one.length} of ${whole.length} bytes`)
  for (const file of globSync('*.js', { cwd: dist })) {
    const outside = [...read(file).matchAll(/from '([^']+)'/g)]
      .map(([, from]) => from)
      .filter((from) => !/^\.\/\w+\.js$/.test(from))
    assert.deepEqual(outside, [], file)
  }
})

test('the client for Python is one file that Python 3.9 can read, with nothing but its standard library, and every type that it names', {
  skip: PYTHON === undefined ? 'set ATELIER_TEST_PYTHON to a Python, 3.9 or newer' : false,
}, () => {
  const script = `import ast, json, sys, typing
text = sys.stdin.read()
tree = ast.parse(text, feature_version=(3, 9))
names = [alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
names += [node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
print(json.dumps(sorted(set(names) - set(sys.stdlib_module_names))))
room = {"__name__": "client"}
exec(compile(text, "client", "exec"), room)
for thing in list(room.values()):
    members = vars(thing).values() if isinstance(thing, type) else []
    for each in [thing, *members]:
        if hasattr(each, "__annotations__"):
            typing.get_type_hints(each, room)`
  const said = execFileSync(PYTHON ?? '', ['-c', script], { input: read('python/atelier_client.py'), encoding: 'utf8' })
  assert.deepEqual(JSON.parse(said), [])
})
