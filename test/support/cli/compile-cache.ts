/**
 * Where processes that a test starts find compiled code: most of a start is reading sources, the same every time. A whole run of
 * the tests shares one cache (scripts/test.ts names it); a file that is run alone keeps one in a folder of its own.
 */
import { join } from 'node:path'

export function findCompileCache(folder: string): { readonly NODE_COMPILE_CACHE: string } {
  return { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(folder, 'compiled') }
}
