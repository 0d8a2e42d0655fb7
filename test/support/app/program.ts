/** The program that tests start as a process: the build when it was made of these very sources, otherwise the sources. */
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../../scripts/built-parts.js'

export const PROGRAM = findProgram(fileURLToPath(new URL('../../..', import.meta.url)))
