/**
 * `npm run build:engine`: makes `dist-engine/`, the engine as a package of its own that can be installed without the service
 * (`npm pack ./dist-engine`).
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { compileEngine, project } from './compile-engine.ts'

interface Manifest {
  readonly exports: Readonly<Record<string, string>>
  readonly scripts: unknown
}

const dist = path.join(project, 'dist-engine')
const {
  exports,
  scripts: _,
  ...manifest
} = JSON.parse(readFileSync(path.join(project, 'engine/package.json'), 'utf8')) as Manifest

/** The sources lie one folder deeper than in a checkout, beside what they use of `lib`. */
function toBuilt(source: string): { readonly types: string; readonly default: string } {
  const place = source.replace('./', './engine/').replace(/\.ts$/, '')
  return { types: `${place}.d.ts`, default: `${place}.js` }
}

rmSync(dist, { recursive: true, force: true })
mkdirSync(dist)
compileEngine(dist)
const doors = Object.entries(exports).map(([door, source]) => [door.replace(/\.ts$/, '.js'), toBuilt(source)])
writeFileSync(
  path.join(dist, 'package.json'),
  `${JSON.stringify({ ...manifest, exports: Object.fromEntries(doors) }, null, 2)}\n`,
)
for (const name of ['engine/README.md', 'LICENSE'])
  cpSync(path.join(project, name), path.join(dist, path.basename(name)))
