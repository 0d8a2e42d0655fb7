/** The sources in a checkout, which Node runs as they are; the build in an installed package, where Node refuses TypeScript. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** @param {string} module such as `engine/index`, without an ending */
export function load(module) {
  const source = `../${module}.ts`
  return require(existsSync(new URL(source, import.meta.url)) ? source : `../dist/${module}.js`)
}
