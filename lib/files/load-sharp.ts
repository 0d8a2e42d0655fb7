/**
 * The library for pictures, loaded with the first picture: it brings some 25 MB of memory and a tenth of a second of processor time
 * along, which a thread that never meets a picture can do without.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type sharp from 'sharp'

type SharpModule = typeof sharp

const require = createRequire(import.meta.url)
// Packages of libraries are named after the platform, and Linux has two.
const NATIVE_PLATFORMS = process.platform === 'linux' ? ['linux', 'linuxmusl'] : [process.platform]
let loaded: SharpModule | null = null

export function loadSharp(): SharpModule {
  loaded ??= require('sharp') as SharpModule
  return loaded
}

/**
 * What its pixels depend on, without loading it where that can be told from its files: its version, and that of the native library
 * that comes with it. One that was built on this machine has no such package and is asked.
 */
export function describeSharp(): object {
  const { version } = require(join(dirname(require.resolve('sharp')), '..', 'package.json')) as { version: string }
  const native = NATIVE_PLATFORMS.flatMap((platform) => {
    try {
      return [[platform, require(`@img/sharp-libvips-${platform}-${process.arch}/versions`) as unknown]]
    } catch {
      return []
    }
  })
  return native.length > 0 ? { version, native } : loadSharp().versions
}
