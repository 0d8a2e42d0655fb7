/** In place of a store that is still to be written. */
export function unwritten<Store extends object>(name: string): Store {
  return new Proxy({} as Store, {
    get: (_, method) => () => Promise.reject(new Error(`${name}.${String(method)} is not written yet`)),
  })
}
