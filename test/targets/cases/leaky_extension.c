/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Python module in C that forgets the buffer of one call in five, or in $LEAK_EVERY. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

static unsigned long leak_every = 5, nr_calls, lost_blocks, lost_bytes;

static char *encode_path(const char *path, size_t bytes)
{
	char *encoded = malloc(bytes);

	if (encoded)
		strcpy(encoded, path);
	return encoded;
}

static PyObject *encode(PyObject *self, PyObject *args)
{
	const char *path;
	PyObject *result;
	char *encoded;
	size_t bytes;

	if (!PyArg_ParseTuple(args, "s", &path))
		return NULL;
	bytes = strlen(path) + 700;
	encoded = encode_path(path, bytes);
	if (!encoded)
		return PyErr_NoMemory();
	result = PyUnicode_FromString(encoded);
	if (nr_calls++ % leak_every) {
		free(encoded);
	} else {
		lost_blocks++;
		lost_bytes += bytes;
	}
	return result;
}

static PyObject *truth(PyObject *self, PyObject *args)
{
	return PyUnicode_FromFormat("%lu %lu\n", lost_blocks, lost_bytes);
}

static PyMethodDef methods[] = {
	{"encode", encode, METH_VARARGS, "Encodes a path."},
	{"truth", truth, METH_NOARGS, "The number of forgotten blocks and bytes."},
	{0},
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "leaky_extension",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit_leaky_extension(void)
{
	const char *every = getenv("LEAK_EVERY");

	if (every && atol(every) > 0)
		leak_every = (unsigned long)atol(every);
	return PyModule_Create(&module);
}
