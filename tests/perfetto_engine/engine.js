// Opens one trace in Perfetto's WebAssembly engine, offline, and runs SQL on it.
//
//   stdin:  {"web": DIR, "trace": FILE, "queries": {NAME: SQL, ...}}
//   stdout: {"results": {NAME: {"columns": [...], "cells": [row 0 ..., row 1 ..., ...]}}}
//           or {"error": TEXT}
//
// DIR holds engine_bundle.js and trace_processor*.wasm of a Perfetto UI. The bundle is a web
// worker which talks protobuf (protos/perfetto/trace_processor/trace_processor.proto) through a
// MessagePort. This file plays the browser around that worker and the UI in front of it.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

// The numbers of trace_processor.proto, as far as they are used here.
const STREAM_MESSAGE = 1;
const RPC = {seq: 1, request: 2, invalidRequest: 4, fatalError: 5};
const APPEND = {name: 'append trace', method: 1, args: 101, result: 201, error: 2};
const FINALIZE = {name: 'finalize trace', method: 2, result: 212, error: 1};
const QUERY = {name: 'query', method: 3, args: 103, result: 203, error: 2};
const QUERY_ARGS = {sql: 1};
const QUERY_RESULT = {columnName: 1, batch: 3};
const BATCH = {types: 1, varints: 2, doubles: 3, strings: 5};
const CELL = {null: 1, varint: 2, double: 3, string: 4};
const WIRE = {varint: 0, fixed64: 1, bytes: 2, fixed32: 5};

function encodeVarint(number) {
  const bytes = [];
  let rest = number;  // divided, not shifted: >> would cut it to 32 bits
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

const varintField = (id, number) =>
  Buffer.concat([encodeVarint(id * 8 + WIRE.varint), encodeVarint(number)]);
const bytesField = (id, data) =>
  Buffer.concat([encodeVarint(id * 8 + WIRE.bytes), encodeVarint(data.length), data]);

// Returns [value, next position]; the value is a BigInt because SQL integers have 64 bits.
function decodeVarint(data, start) {
  let value = 0n;
  for (let at = start, shift = 0n; at < data.length; at++, shift += 7n) {
    value |= BigInt(data[at] & 127) << shift;
    if (data[at] < 128) return [value, at + 1];
  }
  throw new Error('protobuf message ends inside a number');
}

// Yields [field id, value]: a BigInt for a varint, the bytes for everything else.
function* fieldsOf(data) {
  for (let at = 0; at < data.length;) {
    const [tag, afterTag] = decodeVarint(data, at);
    const [value, next] = decodeValue(data, afterTag, Number(tag & 7n));
    yield [Number(tag >> 3n), value];
    at = next;
  }
}

function decodeValue(data, at, wire) {
  switch (wire) {
    case WIRE.varint: return decodeVarint(data, at);
    case WIRE.fixed64: return takeBytes(data, at, 8);
    case WIRE.fixed32: return takeBytes(data, at, 4);
    case WIRE.bytes: {
      const [size, start] = decodeVarint(data, at);
      return takeBytes(data, start, Number(size));
    }
    default: throw new Error(`protobuf wire type ${wire} is unknown`);
  }
}

function takeBytes(data, start, size) {
  const end = start + size;
  if (end > data.length) throw new Error('protobuf message ends inside a field');
  return [data.subarray(start, end), end];
}

function* unpackVarints(data) {
  for (let at = 0, value; at < data.length;) {
    [value, at] = decodeVarint(data, at);
    yield value;
  }
}

function* unpackDoubles(data) {
  for (let at = 0; at < data.length; at += 8) yield data.readDoubleLE(at);
}

// The engine loads its .wasm with a synchronous request, as only web workers may.
function fileRequest(web) {
  return class {
    open(method, url) {
      this.url = url;
    }

    send() {
      this.response = new Uint8Array(fs.readFileSync(path.join(web, path.basename(this.url))));
      this.status = 200;
    }
  };
}

// Runs the worker and connects it with `port`.
async function startWorker(web, port) {
  const self = {location: {href: 'engine_bundle.js'}};
  const globals = {
    self,
    WorkerGlobalScope: class {},
    XMLHttpRequest: fileRequest(web),
    console: new console.Console(process.stderr),  // stdout carries the answer and nothing else
    process: undefined,  // whatever has a `process` passes for Node, which the bundle refuses
  };
  const source = fs.readFileSync(path.join(web, 'engine_bundle.js'), 'utf8');
  new Function(...Object.keys(globals), source)(...Object.values(globals));
  // The bundle compiles and starts its WebAssembly before it returns, all but one promise
  // callback; callbacks run before the event loop turns. So one turn is enough, without a sleep.
  await new Promise(setImmediate);
  self.onmessage({data: port});
}

class Engine {
  static async start(web) {
    const engine = new Engine();
    engine.seq = 0;
    engine.pieces = [];
    engine.port = {postMessage: (bytes) => engine.receive(bytes)};
    await startWorker(web, engine.port);
    return engine;
  }

  // A large reply comes in pieces that end anywhere, in memory the engine uses again: keep copies.
  receive(bytes) {
    this.pieces.push(Buffer.from(bytes));
  }

  // Sends one request and returns its results, which are protobuf messages. The engine replies
  // before onmessage returns: what is missing then will never come.
  call(kind, args) {
    this.pieces = [];
    const request = [varintField(RPC.seq, this.seq++), varintField(RPC.request, kind.method)];
    if (args) request.push(bytesField(kind.args, args));
    const stream = bytesField(STREAM_MESSAGE, Buffer.concat(request));
    this.port.onmessage({data: new Uint8Array(stream)});
    return this.resultsOf(kind);
  }

  *replies() {
    for (const [id, message] of fieldsOf(Buffer.concat(this.pieces))) {
      if (id === STREAM_MESSAGE) yield* fieldsOf(message);
    }
  }

  resultsOf(kind) {
    const results = [];
    for (const [id, value] of this.replies()) {
      if (id === RPC.fatalError) throw new Error(String(value));
      if (id === RPC.invalidRequest) throw new Error(`engine does not know "${kind.name}"`);
      if (id === kind.result) results.push(value);
    }
    if (!results.length) throw new Error(`engine did not answer "${kind.name}"`);
    for (const result of results) throwError(result, kind);
    return results;
  }

  // Reads in pieces, so that a large trace is never in memory twice.
  load(trace) {
    const piece = Buffer.alloc(8 << 20);
    const file = fs.openSync(trace, 'r');
    for (let size; (size = fs.readSync(file, piece)) > 0;) {
      this.call(APPEND, piece.subarray(0, size));
    }
    fs.closeSync(file);
    this.call(FINALIZE);
  }

  query(sql) {
    const columns = [], cells = [];
    for (const result of this.call(QUERY, bytesField(QUERY_ARGS.sql, Buffer.from(sql)))) {
      for (const [id, value] of fieldsOf(result)) {
        if (id === QUERY_RESULT.columnName) columns.push(String(value));
        if (id === QUERY_RESULT.batch) for (const cell of cellsOf(value)) cells.push(cell);
      }
    }
    return {columns, cells};
  }
}

function throwError(result, kind) {
  for (const [id, value] of fieldsOf(result)) {
    if (id === kind.error && value.length) throw new Error(String(value));
  }
}

// Yields the cells of a batch as JSON text. A batch has the types of all cells in order, and the
// values of each type apart.
function* cellsOf(batch) {
  const parts = new Map(fieldsOf(batch));
  const part = (id) => parts.get(id) ?? Buffer.alloc(0);
  const varints = unpackVarints(part(BATCH.varints));
  const doubles = unpackDoubles(part(BATCH.doubles));
  const strings = String(part(BATCH.strings)).split('\0').values();
  for (const type of unpackVarints(part(BATCH.types))) {
    switch (Number(type)) {
      case CELL.null: yield 'null'; break;
      case CELL.varint: yield String(BigInt.asIntN(64, varints.next().value)); break;
      case CELL.double: yield doubleToJson(doubles.next().value); break;
      case CELL.string: yield JSON.stringify(strings.next().value); break;
      default: throw new Error('a cell is neither number, text nor NULL: use hex() for blobs');
    }
  }
}

// Keeps 1.0 from becoming the integer 1. Infinity is no JSON, but Python reads it.
function doubleToJson(number) {
  const text = String(number);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

// Cells are JSON already: JSON.stringify would round integers beyond 2^53.
function resultToJson([name, {columns, cells}]) {
  return `${JSON.stringify(name)}:{"columns":${JSON.stringify(columns)},"cells":[${cells}]}`;
}

async function main() {
  const job = JSON.parse(fs.readFileSync(0, 'utf8'));
  const engine = await Engine.start(job.web);
  engine.load(job.trace);
  const results = Object.entries(job.queries).map(([name, sql]) => [name, engine.query(sql)]);
  return `{"results":{${results.map(resultToJson)}}}`;
}

main()
    .catch((error) => JSON.stringify({error: error.message}))
    .then((answer) => process.stdout.write(answer));
