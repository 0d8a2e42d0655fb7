/** What `npm start` runs after the set-up: the program as it was built, or its sources where it could not be. */
import { pathToFileURL } from 'node:url'
import { findProgram } from './built-parts.js'
import { projectDirectory } from './local-node.js'

await import(pathToFileURL(findProgram(projectDirectory)).href)
