/** The few parts of the global `WebAssembly` that are used here; the type library for servers does not describe it. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}

export interface WasmModule {
  readonly [Symbol.toStringTag]: string
}

interface WebAssemblyGlobal {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => WasmModule
  readonly Instance: new (module: WasmModule) => { readonly exports: Readonly<Record<string, unknown>> }
}

export const webAssembly = (globalThis as unknown as { readonly WebAssembly: WebAssemblyGlobal }).WebAssembly
