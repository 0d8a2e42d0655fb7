/** Wheels, packs and models, made on the spot: nothing of what tests build comes from outside. */
import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { rawZip } from './raw-zip.ts'

export type Files = Readonly<Record<string, string>>

export function zipOf(files: Files): Buffer {
  return rawZip(Object.entries(files).map(([name, data]) => ({ name, data })))
}

interface Wheel {
  readonly name: string
  readonly version: string
  readonly requires?: readonly string[]
  /** Of its only module, which is named like it. */
  readonly code?: string
}

/** A package of one module, as an index would have it. */
export async function writeWheel(folder: string, { name, version, requires = [], code = '' }: Wheel): Promise<string> {
  const info = `${name}-${version}.dist-info`
  const needs = requires.map((each) => `Requires-Dist: ${each}\n`).join('')
  const files = {
    [`${name}.py`]: `VERSION = "${version}"\n${code}`,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n${needs}`,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  }
  const record = [...Object.keys(files), `${info}/RECORD`].map((file) => `${file},,\n`).join('')
  const wheel = path.join(folder, `${name}-${version}-py3-none-any.whl`)
  await writeFile(wheel, zipOf({ ...files, [`${info}/RECORD`]: record }))
  return wheel
}

export async function writeFolder(folder: string, files: Files): Promise<string> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), text)
  }
  return folder
}

/** A pack with one node class. `imports`: what its module needs. */
export function packFiles(
  className: string,
  { imports = [], requirements }: { readonly imports?: readonly string[]; readonly requirements?: string } = {},
): Files {
  const needs = imports.map((name) => `import ${name}\n`).join('')
  const code = `${needs}
class ${className}:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}
    RETURN_TYPES = ("STRING",)
    FUNCTION = "run"
    CATEGORY = "test"
    def run(self):
        return ("",)

NODE_CLASS_MAPPINGS = {"${className}": ${className}}
`
  return { '__init__.py': code, ...(requirements === undefined ? {} : { 'requirements.txt': requirements }) }
}

/** A safetensors file with nothing in it but its name. */
export function tinyModel(note: string): Buffer {
  const header = Buffer.from(JSON.stringify({ __metadata__: { note } }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header])
}

/** A repository with one commit; resolves with the commit. */
export async function writeRepository(folder: string, files: Files): Promise<string> {
  await writeFolder(folder, files)
  const git = (...words: string[]) =>
    execFileSync(
      'git',
      ['-c', 'user.name=t', '-c', 'user.email=t@example.com', '-c', 'init.defaultBranch=main', ...words],
      { cwd: folder, encoding: 'utf8' },
    ).trim()
  git('init', '--quiet')
  git('add', '--all')
  git('commit', '--quiet', '--message', 'files')
  // As a folder that any web server can serve.
  git('update-server-info')
  return git('rev-parse', 'HEAD')
}

/** The least that a builder starts: it loads packs as ComfyUI does, in the same words, and lists their classes. */
const MAIN = `
import argparse, http.server, importlib.util, json, os, sys, traceback

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--listen")
options, _ = parser.parse_known_args()
here = os.path.dirname(os.path.abspath(__file__))
listed = {"KSampler": {"python_module": "nodes", "input": {}}}
folder = os.path.join(here, "custom_nodes")
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    if not os.path.exists(os.path.join(path, "__init__.py")):
        continue
    try:
        spec = importlib.util.spec_from_file_location("custom_nodes_" + name.replace("-", "_"), os.path.join(path, "__init__.py"), submodule_search_locations=[path])
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        for key in getattr(module, "NODE_CLASS_MAPPINGS", {}):
            listed[key] = {"python_module": "custom_nodes." + name, "input": {}}
    except Exception as error:
        print(traceback.format_exc(), flush=True)
        print("Cannot import " + path + " module for custom nodes: " + str(error), flush=True)
stats = {"system": {"comfyui_version": "0.3.40", "os": "posix"}, "devices": []}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = {"/object_info": listed, "/system_stats": stats}.get(self.path)
        body = json.dumps(told or {}).encode()
        self.send_response(200 if told else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass

print("To see the GUI go to: http://127.0.0.1:%d" % options.port, flush=True)
http.server.ThreadingHTTPServer((options.listen, options.port), Handler).serve_forever()
`

export function comfyuiFiles(requirements = ''): Files {
  return {
    'main.py': MAIN,
    'requirements.txt': requirements,
    'custom_nodes/example_node.py.example': '',
    'models/checkpoints/put_checkpoints_here': '',
  }
}
